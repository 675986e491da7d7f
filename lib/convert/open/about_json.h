// The JSON of what is known about who wrote a checkpoint: docs/json.md, the fields `shard` and `packing` of
// `inspect`. The program and the library's other doors print the same.
#pragma once

namespace mckpt::impl {

class JsonWriter;
class Store;
struct PackedBy;
struct ShardFacts;

// One value each; null for nothing.
void write_shard(JsonWriter& json, const Store& store, const ShardFacts* facts);
void write_packing(JsonWriter& json, const Store& store, const PackedBy* by);

}  // namespace mckpt::impl
