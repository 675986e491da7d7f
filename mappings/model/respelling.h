// Parameters under the other names of a spelling (core/hybrid/spellings.h), and in the order in which a model
// with such modules registers them, which decides how Megatron-FSDP packs them:
//
//   usual   mixer.conv1d_weight  mixer.conv1d_bias  mixer.dt_bias ...  mixer.in_proj.weight  mixer.norm.weight
//   other   mixer.dt_bias ...  mixer.in_proj.weight  mixer.conv1d.weight  mixer.conv1d.bias  mixer.norm.weight
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ModelMap;
struct ModelParameter;
struct RunSetup;
struct Spelling;

// Renames and moves the parameters. pre: they have their usual names, in order of registration.
void respell(const Spelling& spelling, std::vector<ModelParameter>& parameters);

// Throws kUsage if the model has no parameter that one of the spelling's words is about. `rank_files`: the
// names are written to files of ranks, where alone the layers of MTP may have their old names.
void refuse_without_effect(const Spelling& spelling, const ModelMap& map, RunSetup setup,
                           bool rank_files = false);

// Throws kUnaccounted for a parameter that a checkpoint stores under its usual and its other name.
[[noreturn]] void refuse_two_names(const std::string& usual, const std::string& other);

// The spelling of a checkpoint of the model; `has` returns whether it has a key. The setup's own spelling is
// not looked at. Throws kUnaccounted with both names if a parameter is stored under both, or if one layer has
// the usual name of a parameter and another layer the other one.
Spelling stored_spelling(const ModelMap& map, RunSetup setup,
                         const std::function<bool(const std::string&)>& has);

}  // namespace mckpt::impl
