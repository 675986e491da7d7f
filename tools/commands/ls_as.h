// mckpt ls HF_DIR --as megatron|fsdp: what one rank of a Megatron run would hold of a Hugging Face model.
//
//   $ mckpt ls tiny_qwen3_moe --as megatron --tp 2 --rank 1 '*layers.0.self*qkv*'
//   name                                                          ...  bytes  attributes
//   decoder.layers.0.self_attention.linear_qkv.layer_norm_weight  ...     32  sequence_parallel
//   decoder.layers.0.self_attention.linear_qkv.weight             ...  1,024  tensor_model_parallel, partition_dim 0
//
//   $ mckpt ls tiny_qwen3_moe --as fsdp --tp 2 --dp 2 --rank 3 '*layers.0.self*linear_qkv.weight'
//   name                                                            ...  shape     bytes  held
//   model.module.decoder.layers.0.self_attention.linear_qkv.weight  ...  [64, 16]    640  [20, 16] at [44, 0]
#pragma once

#include <optional>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "tools/options/hf_run_flags.h"

namespace mckpt::impl {

class CommandLine;
struct GlobalFlags;
struct TensorChoice;

// The options of this form of `ls`, and its answer. Declared beside the options of `ls` itself, which apply
// to both forms.
class LsAs {
 public:
  void declare(CommandLine& line);
  bool chosen() const { return !as_.empty(); }
  // Lists. pre: chosen(), and the line was parsed.
  Exit run(const GlobalFlags& flags, const std::string& path, const TensorChoice& choice, bool digest,
           int threads);

 private:
  std::string as_;
  i64 rank_ = 0;
  HfRunFlags run_{"auto"};
};

}  // namespace mckpt::impl
