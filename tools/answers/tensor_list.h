// Tensors of a store as a table with a line each, or as JSON: the answers of `mckpt ls`.
//
//   {"name": "model.norm.weight", "dtype": "bfloat16", "shape": [16], "bytes": 32,
//    "file": "model-00002-of-00002.safetensors", "offset": 8728,
//    "chunks": [{"rank": null, "offsets": [0], "sizes": [16], "file": "...", "offset": 8728, "bytes": 32}]}
//
// "file" and "offset" are null for a tensor of several chunks; the chunks have their own.
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonWriter;
class Output;
class Store;

// `digests`: one for each tensor, or none.
void write_tensors(Output& out, const Store& store, std::span<const i64> tensors,
                   std::span<const std::string> digests);
// The fields of one object, with all chunks. `sha256`: null without --digest.
void write_tensor(JsonWriter& json, const Store& store, i64 tensor, const std::string* sha256);

}  // namespace mckpt::impl
