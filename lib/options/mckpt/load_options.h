// The options of mckpt/load.h: which tensors are loaded into memory, and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mckpt/options.h"
#include "mckpt/run.h"

namespace mckpt {

struct LoadOptions {
  std::string device = "cuda:0";  // "cpu", "cuda" (the first that this process may use), "cuda:N"
  int threads = 0;  // that read; 0: one for each processor, for a GPU eight, and more while it waits for them
};

// The tensors of a checkpoint under their own names, each whole.
struct TensorsToLoad {
  LoadOptions how{};
  std::string names{};  // a glob; "": all tensors
  // Type of floating-point tensors of 16 bits and more: keep, bf16, fp16, fp32. With a type, the weights of a
  // quantised model are loaded as their values, in that type and under the names of the values; with keep, as
  // codes and scales.
  std::string dtype = "keep";
  OpenOptions files{};
};

// The tensors that one rank of a Megatron run holds of a Hugging Face model at run time, under its names
// there: its layers, its experts, its tensor-parallel part. `dp` and `cp` change nothing of it.
struct RankToLoad {
  LoadOptions how{};
  ModelOptions model{};
  Grid grid{};
  std::int64_t rank = 0;                  // tp varies fastest, then cp, dp, pp
  Values values{.params_dtype = "auto"};  // of its fields `dtype` is the type on the device
  std::vector<std::string> spelling{};    // as in ToFsdp
  std::string hybrid_pattern{};
};

}  // namespace mckpt
