// The answer of `mckpt inspect` about one checkpoint as JSON. The fields are listed in docs/json.md.
#pragma once

#include <string>

namespace mckpt::impl {

class JsonWriter;
class Store;

// Writes the fields into an object that is open. `values`: also the values of objects that are not tensors.
void write_checkpoint_json(JsonWriter& json, const Store& store, const std::string& path, bool values);

}  // namespace mckpt::impl
