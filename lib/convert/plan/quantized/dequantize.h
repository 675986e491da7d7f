// A quantised model as one of plain numbers: a folder, or one safetensors file.
//
//   DeepSeek-V3/  w.weight F8_E4M3, w.weight_scale_inv, config.json with quantization_config
//   DST/          w.weight BF16,                        config.json without it
//
// The tensors are the tensors of the view over the quantised ones (hf/quantized/dequantized_store.h); every
// other tensor is copied as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/file/open_options.h"
#include "io/safetensors/layout.h"

namespace mckpt::impl {

struct Conversion;

// Plain values. `target` is a folder if the source is one, unless its name ends in .safetensors; else a file.
struct DequantizeOptions {
  std::string source, target;
  std::optional<DType>
      dtype{};  // of the weights that were quantised; nothing: as config.json says, or bfloat16
  std::optional<i64> max_shard_bytes{};  // of a folder; nothing: kUsualShardBytes
  std::vector<Code> accept{};  // codes of damage that is accepted
  OpenOptions files{};
  int threads = 1;
};

// Throws kQuantMisfit for codes and scales that do not fit together, kQuantized for a method that is not
// decoded, kUnknownFormat if nothing is quantised, kUsage for a size of shards of one file; and what
// plan_export_own() throws.
Conversion plan_dequantize(const DequantizeOptions& options);

}  // namespace mckpt::impl
