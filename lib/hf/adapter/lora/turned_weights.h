// Whether the weight of a module is [in, out]: nn.Linear of torch has [out, in], Conv1D of transformers has
// [in, out]. PEFT goes by the class of the module and corrects fan_in_fan_out of the config, which says the
// same.
//
//   gpt2    transformer.h.0.attn.c_proj.weight [768, 768]      Conv1D
//   qwen3   model.layers.0.self_attn.q_proj.weight [16, 16]    Linear, also with fan_in_fan_out
#pragma once

#include <span>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

struct BaseFacts;

// `says_turned`: fan_in_fan_out. `rows`, `columns`: of the product of the factors. Throws kAmbiguousLayout
// where neither the type of the model nor the shape of the weight says it.
bool is_turned_weight(std::string_view module, const BaseFacts& facts, bool says_turned, i64 rows,
                      i64 columns, std::span<const i64> weight);

}  // namespace mckpt::impl
