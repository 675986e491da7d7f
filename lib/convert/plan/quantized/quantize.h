// A model of plain numbers as a quantised one: in blocks of FP8, in MXFP4, or like the quantised model that
// it was made of.
//
//   Qwen3-bf16/   w.weight BF16                        config.json
//   DST/          w.weight F8_E4M3, w.weight_scale_inv  config.json with quantization_config
//
// Codes and scales are tensors of a view (hf/quantized/quantized_store.h), computed while they are written.
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"
#include "io/file/open_options.h"
#include "io/safetensors/layout.h"

namespace mckpt::impl {

struct Conversion;
struct ExportOptions;

enum class QuantizeTo : u8 { kLikeSource, kFp8Block, kMxfp4 };

// like-source, fp8-block or mxfp4; no word is like-source if there is a model to be like. Throws kUsage with
// the option, as the user knows it.
QuantizeTo quantize_scheme(std::string_view word, std::string_view option, bool has_like = false);

// Plain values.
struct QuantizeOptions {
  std::string source, target;
  QuantizeTo to = QuantizeTo::kFp8Block;
  std::string like{};  // of kLikeSource: the folder of the quantised model
  i64 max_shard_bytes = kUsualShardBytes;
  bool original_files = true;  // of kLikeSource: the files of `like`; false: files of max_shard_bytes
  OpenOptions files{};
};

// A checkpoint of Megatron as a quantised Hugging Face folder: codes and scales of the tensors that
// plan_export() would write. For kLikeSource the assets are the folder of the quantised model, with its
// weights. Throws what plan_export() and plan_quantize() throw; kUsage for types that are given.
Conversion plan_quantized_export(const ExportOptions& options, QuantizeTo to);

// Throws kUsage for `like` with another scheme, for a folder in `like` without quantised tensors,
// kUnaccounted for tensors that only one side has or if nothing is quantised this way, and what opening
// throws.
Conversion plan_quantize(const QuantizeOptions& options);

}  // namespace mckpt::impl
