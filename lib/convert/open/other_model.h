// Whether a config.json describes the model that a checkpoint was trained from, by the facts that the run
// states of it (convert/facts/unlike_args.h):
//
//   args of the checkpoint   config.json
//   num_query_groups 2       num_key_value_heads 4        another model: refused
//   apply_layernorm_1p       model_type llama             the bytes are other weights: refused, or accepted
//   rotary_base 1000000      rope_theta 10000             the result computes something else: a warning
#pragma once

#include <span>
#include <vector>

#include "core/base/error_code.h"

namespace mckpt::impl {

class Store;
struct Finding;
struct HfModel;

// A wrong number of heads or groups cannot be seen in the shapes: fused queries, keys and values have the
// same rows, in another order. Throws kContradiction with up to three facts that differ; facts other than
// sizes become warnings if that code is `accepted`. Returns the warnings.
std::vector<Finding> refuse_other_model(const Store& store, const HfModel& model,
                                        std::span<const Code> accepted = {});
// Adds a fact of what differs from the config.json that is kept with the checkpoint, for `inspect`.
void add_config_fact(Store& store);

}  // namespace mckpt::impl
