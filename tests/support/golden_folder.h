// A golden model as the folder of a Hugging Face model.
#pragma once

#include <fstream>
#include <string>

#include "core/base/text.h"
#include "tests/support/golden_config.h"
#include "tests/support/golden_weights.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {

inline void write_golden(const std::string& model, const TempFolder& folder) {
  std::ifstream recipes(golden_folder(model) + "/tensors.txt");
  std::string header = "{", data;
  for (const GoldenTensor& t : draw_golden(recipes)) {
    std::string shape;
    for (std::size_t d : t.dims) shape += cat(shape.empty() ? "" : ",", d);
    i64 begin = std::ssize(data);
    data += t.bytes;
    if (header.size() > 1) header += ',';
    header += safetensors_entry(t.name, t.dtype, shape, begin, std::ssize(data));
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  folder.put("model.safetensors", safetensors_file(header, data));
  folder.put("config.json", golden_config_text(model));
}

}  // namespace mckpt::impl
