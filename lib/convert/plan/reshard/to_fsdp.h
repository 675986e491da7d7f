// Any checkpoint as fsdp_dtensor: what SRC is decides who plans.
//
//   a Hugging Face folder, or the model's own names   plan_hf_to_fsdp()        weights alone
//   Megatron's: fsdp_dtensor, torch_dist, files of    plan_sharded_to_fsdp()   states of the optimizer too
//   ranks, FSDP2 and Megatron-FSDP alone
#pragma once

#include <optional>

#include "convert/keys/name_rules.h"
#include "convert/open/options.h"
#include "convert/plan/targets/fsdp.h"
#include "core/base/int.h"

namespace mckpt::impl {

struct Conversion;

// Plain values. Every rank of a parallel conversion plans with the same options, except `model.rank`.
struct ToFsdpOptions {
  // All of a model; source, target, grid, packing, vocabulary and iteration also of a checkpoint of Megatron,
  // which is opened as `from` says. The fields that both have are taken from `from`.
  HfToFsdpOptions model{};
  ReshardSourceOptions from{};
  bool keep_fp8 = false;     // as in ReshardOptions
  UnitModules modules{};     // of a model without a table
  bool model_alone = false;  // a checkpoint of Megatron is refused
};

// Throws what the two functions throw, and kUsage for options that have no meaning for the source.
Conversion plan_to_fsdp(ToFsdpOptions options);

}  // namespace mckpt::impl
