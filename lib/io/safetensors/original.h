// The safetensors files in which the tensors of a model were, without their data: names, headers byte for
// byte, and the index. A result that has the same tensors is laid out like them, so that a model that nobody
// changed has the same files again, whatever program wrote them:
//
//   model-00001-of-00002.safetensors    4,998,763,520 bytes, header {"__metadata__":{...},"lm_head.weight":...
//   model-00002-of-00002.safetensors    ...
//   model.safetensors.index.json        {"metadata": {"total_size": ...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// Plain values. From a folder they are known to be sound; from elsewhere they may be anything, and
// SafetensorsLayout::like() checks them.
struct SafetensorsOriginal {
  struct File {
    std::string name;
    i64 bytes = 0;
    std::string header;  // the JSON with its padding, without the length in front
  };
  std::vector<File> files;
  std::string index_name, index;  // "" where one file holds everything
};

// The files of an open folder of safetensors, with their headers. Nothing if the store has another format or
// problems, or if a header is not UTF-8, because JSON could not keep it. Throws what reading throws.
std::optional<SafetensorsOriginal> original_files(const Store& store);

}  // namespace mckpt::impl
