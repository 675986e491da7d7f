// What a model must have for a row to apply. A table lists the rows of all members of a family; conditions
// choose between them:
//
//   {"self_attention.linear_qkv.bias", ..., Needs::kQkvBias}     Qwen2 has it, Qwen3 does not
#pragma once

#include <span>

#include "mappings/row.h"

namespace mckpt::impl {

// True if the row applies to this model and tower. `form` is how the experts are stored: kExpertsApart,
// kExpertsFused or kExpertsHub.
bool holds(Needs needs, const ModelConfig& model, const TowerConfig& tower, Needs form);

// The name in map files and in `mckpt mappings`: "qkv_bias"; "" for kAlways.
std::string_view needs_name(Needs needs);
Needs needs_from_name(std::string_view name);  // throws kBadMap with the nearest

// True for the three forms of experts.
bool is_expert_form(Needs needs);

}  // namespace mckpt::impl
