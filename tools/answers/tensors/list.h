// Tensors of a store as a table with a line each, or as JSON: the answers of `mckpt ls`.
//
//   {"name": "model.norm.weight", "dtype": "bfloat16", "shape": [16], "bytes": 32,
//    "file": "model-00002-of-00002.safetensors", "offset": 8728,
//    "chunks": [{"rank": null, "offsets": [0], "sizes": [16], "file": "...", "offset": 8728, "bytes": 32}]}
//
// "file" and "offset" are null for a tensor of several chunks; the chunks have their own.
// In the file of one rank (convert/open/shard_facts.h), bytes count what the file has.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;
class JsonWriter;
class Output;
class Store;
struct ShardFacts;

// `digests`: one for each tensor, or none. `shard`: of one rank's file; null for any other store.
void write_tensors(Output& out, const Store& store, std::span<const i64> tensors,
                   std::span<const std::string> digests, const ShardFacts* shard);
// The fields of one object, with all chunks. `sha256`: null without --digest.
void write_tensor(JsonWriter& json, const Store& store, i64 tensor, const std::string* sha256,
                  const ShardFacts* shard);

// The chosen tensors of one checkpoint as JSON: `write` adds the fields of the i-th of them to an open
// object, `totals` fields that are about all of them. `store` may be null if there is an error.
struct TensorRows {
  const std::string& path;
  const Store* store;
  std::size_t count;
  std::function<void(JsonWriter&, std::size_t i)> write;
  std::function<void(JsonWriter&)> totals{};
  const Error* error = nullptr;  // of opening or reading it; then nothing else is written
};

// The answer of a command that lists tensors: one object with all checkpoints, or (`lines`) an object a
// tensor and line, which names its checkpoint if there are several.
void write_rows(Output& out, std::string_view command, bool lines, std::span<const TensorRows> checkpoints);

}  // namespace mckpt::impl
