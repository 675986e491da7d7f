// A Hugging Face folder of made tensors, for tests of quantised weights.
#pragma once

#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl::quantized_test {

struct MadePart {
  std::string name;
  DType dtype;
  std::vector<i64> dims{};
  std::string bytes{};  // "": zeros
};

// "" for no config.json.
inline void put_model(const TempFolder& folder, const std::vector<MadePart>& tensors,
                      const std::string& config) {
  std::string header = "{", data;
  for (const MadePart& t : tensors) {
    std::string shape;
    for (i64 d : t.dims) shape += cat(shape.empty() ? "" : ",", d);
    i64 begin = std::ssize(data), bytes = dtype_bytes(t.dtype, Shape(t.dims).items());
    data += t.bytes.empty() ? std::string(static_cast<std::size_t>(bytes), '\0') : t.bytes;
    header += cat(header.size() > 1 ? "," : "",
                  safetensors_entry(t.name, dtype_info(t.dtype).safetensors, shape, begin, begin + bytes));
  }
  folder.put("model.safetensors", safetensors_file(header + "}", data));
  if (!config.empty()) folder.put("config.json", config);
}

}  // namespace mckpt::impl::quantized_test
