// The index of a sharded Hugging Face folder, *.safetensors.index.json:
//
//   {"metadata": {"total_size": 123}, "weight_map": {"tensor name": "model-00001-of-00002.safetensors", ...}}
//
// Torch files have the same: pytorch_model.bin.index.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/store/finding.h"

namespace mckpt::impl {

// The index, read and checked by itself; folder.cc compares it with the files.
struct SafetensorsIndex {
  struct Entry {
    std::string tensor;
    u32 file;  // index into files
  };
  std::vector<std::string>
      files;  // checked: inside the folder, of the format by their names; in natural order
  std::vector<Entry> weight_map;  // in the order of the text
  // The bytes of all tensors, as the index states them.
  std::optional<i64> total_size;
  std::vector<Finding> findings;
};

// Throws kBadJson, kBadIndex (no weight_map, wrong types), kBadPath for a file outside of the folder.
SafetensorsIndex parse_safetensors_index(std::string_view text);
SafetensorsIndex parse_torch_index(std::string_view text);

}  // namespace mckpt::impl
