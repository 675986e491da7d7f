// The training run that a conversion is for, and what happens to values on the way: parts of the structs in
// mckpt/plans.h and mckpt/load.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mckpt {

// The parallel sizes of a Megatron run. The world has pp * tp * cp * dp ranks.
struct Grid {
  std::int64_t tp = 1, cp = 1, ep = 1, etp = 1, pp = 1;
  std::optional<std::int64_t> dp{};  // without cp, with hsdp; none: the smallest that fits the other sizes
  std::int64_t hsdp = 1;             // FSDP instances
  std::string hsdp_outer = "replicate";  // how they are related: replicate or shard
};

// How a run uses Megatron-FSDP.
struct Fsdp {
  std::string engine = "v1";                          // or v2: whole parameters, in fp32, under model.<param>
  std::string strategy = "optim_grads_params";        // or no_shard, optim, optim_grads
  bool transformer_units = true, mamba_units = true;  // the classes of layers that are FSDP units
  // Stacks of a hybrid model are units and own their layers: its groups, or without groups the whole stack.
  bool hybrid_stack_units = false;
  // The recipe of weights in 8 bits: none, tensorwise, delayed, blockwise, mxfp8. auto: none, and where a
  // checkpoint of Megatron-FSDP is resharded, one that packs as its run did.
  std::string fp8_recipe = "auto";
  std::string units_for = "full";  // strategies with units: full (only optim_grads_params), sharded
  std::optional<std::int64_t> bucket_size{};  // items at which buckets outside units are cut; 0: never
  std::vector<std::string> freeze{};          // globs of parameters that are not trained; "none": all are
};

// Types of the result's values. dtype_rule: {glob, type}; if several match, the last decides.
struct Values {
  std::string vocab_size = "auto";    // rows of the vocabulary: auto (padded where needed), keep, a number,
                                      // or divisible-by-128 as Megatron pads
  std::string params_dtype = "none";  // type at run time: none, auto, bf16, fp16, fp32
  std::string dtype = "keep";         // type that is written: keep, bf16, fp16, fp32
  std::vector<std::pair<std::string, std::string>> dtype_rule{};
};

}  // namespace mckpt
