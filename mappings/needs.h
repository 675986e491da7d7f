// What a model must have for a row to apply.
#pragma once

#include <span>

#include "mappings/row.h"

namespace mckpt::impl {

// `form`: how the experts are stored, one of the three kExperts....
bool holds(Needs needs, const ModelConfig& model, const TowerConfig& tower, Needs form);

// The name in map files and in `mckpt mappings`: "qkv_bias"; "" for kAlways.
std::string_view needs_name(Needs needs);
Needs needs_from_name(std::string_view name);  // throws kBadMap with the nearest

bool is_expert_form(Needs needs);

}  // namespace mckpt::impl
