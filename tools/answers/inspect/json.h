// The answer of `mckpt inspect` about one checkpoint as JSON. The fields are listed in docs/json.md.
#pragma once

#include <string>

#include "io/store/summary.h"

namespace mckpt::impl {

class JsonWriter;
class Store;

// Writes the fields into an object that is open. `packed`: the parameters of its quantised tensors. `values`:
// also the values of objects that are not tensors; `groups`: also the parameter groups of the optimizer.
void write_checkpoint_json(JsonWriter& json, const Store& store, const PackedParameters& packed,
                           const std::string& path, bool values, bool groups);

}  // namespace mckpt::impl
