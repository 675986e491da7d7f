// A Hugging Face model into the fsdp_dtensor checkpoint that a Megatron-FSDP run of a grid would have saved.
//
//   model.layers.0.self_attn.q_proj.weight ...   -->   DST/release/__0_0.distcp, __1_0.distcp, .metadata
#pragma once

#include "convert/keys/value_options.h"
#include "convert/plan/conversion.h"
#include "hf/model.h"
#include "mappings/fsdp/layout.h"

namespace mckpt::impl {

struct HfToFsdpOptions {
  std::string source, target;
  HfModelOptions model{};
  Grid grid{};
  FsdpSetup fsdp{};
  FrozenNames frozen{};
  ValueOptions values{};
  std::optional<i64> iteration{};  // none: DST/release
  int threads = 1;
  int rank = 0;  // of this process; rank 0 alone compares the data of tensors that repeat another
};

// Throws what open_hf_model(), KeyTable, FsdpPlan and import_job() throw; kNotFound for a model without weights,
// kUnaccounted where a tensor that should repeat another one has values of its own.
Conversion plan_hf_to_fsdp(const HfToFsdpOptions& options);

}  // namespace mckpt::impl
