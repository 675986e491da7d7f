// The strings of __metadata__ in a checkpoint of safetensors.
#pragma once

#include <map>
#include <string>

namespace mckpt::impl {

class Store;

// By key: the value that the files have, and of files that have several "one and another". Empty for other formats.
// Entries about the places of shards in a tensor (shards.h) are left out.
std::map<std::string, std::string> safetensors_metadata(const Store& store);

}  // namespace mckpt::impl
