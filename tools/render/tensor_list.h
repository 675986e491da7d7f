// Tensors of a store as a table with a line each, or as JSON.
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
// One object, with all chunks. `sha256`: null where it was not asked for.
void write_tensor(JsonWriter& json, const Store& store, i64 tensor, const std::string* sha256);

}  // namespace mckpt::impl
