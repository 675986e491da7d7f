// The facts of the run that wrote a checkpoint against a config.json: names and shapes of tensors do not show
// most of them, and the weights mean something else where they differ.
//
//   args              Namespace(apply_layernorm_1p=True, rotary_base=1000000, ...)
//   config.json       {"model_type": "llama", "rope_theta": 10000.0, ...}
//                       -->  apply_layernorm_1p  True  False   kBytes    norms are stored less one
//                            rotary_base  1000000  10000       kValues   rope_theta
//
// A run of the config would state what a conversion writes for it (convert/facts/megatron_args.h); the table
// here says which of these fields are compared, and what a difference means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
struct HfModel;

// The meaning of a difference for the tensors.
enum class Unlike : u8 {
  kShown,  // nothing by itself: names and shapes of tensors show it
  kSizes,  // they are of another model
  kBytes,  // the same bytes are other weights: no value of config.json makes them right
  kValues  // the weights are the same, and the config computes something else with them
};

// A fact with two values, as Python writes them.
struct UnlikeArg {
  std::string_view name;  // under which the run states it
  std::string in_run, in_config;
  Unlike unlike;
  std::string_view key;    // of config.json; "": its model_type decides
  std::string_view means;  // what the run's value means, for kBytes
  std::string why;  // a sentence: why config.json means another value than the key has; "": it does not
};

// The facts that differ, in the order of the table, and where the run says them.
struct UnlikeArgs {
  std::string_view where;  // "the args", "run_config.yaml", "transformer_config.json"
  std::vector<UnlikeArg> all;
};

// Facts that the run does not state are left out, and args that cannot be read say nothing. A default of
// Megatron's counts only where the args describe the model: a program that builds its model without args
// leaves their defaults.
UnlikeArgs unlike_args(const Store& store, const HfModel& model);

}  // namespace mckpt::impl
