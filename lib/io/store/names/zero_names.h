// Facts that the names in a checkpoint folder of DeepSpeed show.
//
//   latest                                                  "global_step5": the folder of the last save
//   global_step5/mp_rank_00_model_states.pt                 the model; ZeRO 1 and 2
//                zero_pp_rank_0_mp_rank_00_model_states.pt  the model, of data-parallel rank 0; ZeRO 3
//                bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt   the float32 weights and the optimizer, rank 0
//                layer_3_expert_0_mp_rank_00_model_states.pt      expert 0 of the fourth layer of DeepSpeed-MoE
//                expp_rank_1_mp_rank_00_optim_states.pt           the optimizer of experts, without ZeRO
//                layer_03-model_00-model_states.pt                a layer of a pipeline
//   zero_to_fp32.py                                         DeepSpeed's script that joins the parts
#pragma once

#include <optional>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

inline constexpr std::string_view kZeroLatestName = "latest";

struct ZeroName {
  enum class Kind : u8 { kModel, kOptimizer, kExpert, kExpertOptimizer, kPipelineLayer };
  Kind kind = Kind::kModel;
  i64 rank = -1;  // data-parallel; of an optimizer of experts expert-parallel; -1: the file is of all of them
  i64 model_rank = 0;           // tensor-parallel and pipeline rank, as one number
  i64 layer = -1, expert = -1;  // of a file of an expert; no layer: all layers of an older version
};

// Whether it is a script that DeepSpeed puts beside every save. Nothing of the checkpoint is in it.
bool is_zero_script(std::string_view file);

// Nothing for a file of another name.
std::optional<ZeroName> zero_name(std::string_view file);

}  // namespace mckpt::impl
