// Files of test_data/quantized in memory, and the layouts of their tensors, by their names alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/quantized/layout.h"
#include "tests/support/golden_json.h"

namespace mckpt::impl::quantized_files {

struct Held {
  DType dtype = DType::kU8;
  std::vector<i64> dims;
  std::vector<u8> bytes;
};
using Tensors = std::map<std::string, Held, std::less<>>;

// All tensors of a file or folder of test_data/quantized.
Tensors read_tensors(const std::string& path);

// A tensor of values as it is stored: in parts.
struct Stored {
  QuantLayout layout;
  const Held* codes = nullptr;
  const Held* scales = nullptr;
  const Held* zero_points = nullptr;
  std::string codes_name, scales_name;
  bool turned = false;  // the values are the parts' with the last two dimensions exchanged
};

// The parts of the tensor `name`; no codes where it is stored as it is. `facts` are the answers' blocks and
// cases.
Stored stored_as(const Tensors& tensors, const std::string& name, const GoldenJson& facts);

}  // namespace mckpt::impl::quantized_files
