// The forms in which models on Hugging Face store their experts.
#pragma once

#include <string_view>

namespace mckpt::impl {

// How a model's files store the experts of a layer. [experts, out, in] and [experts, in, out] differ only by
// a transposition, so the user may have to choose.
enum class ExpertLayout {
  kAuto,   // as the tensors' names and shapes show
  kApart,  // one tensor for each expert
  kFused,  // one tensor for all experts
  kHub     // one tensor for all experts, transposed
};
std::string_view expert_layout_name(ExpertLayout layout);  // "auto", "apart", "fused", "hub"
ExpertLayout expert_layout_of(std::string_view name);      // kAuto for any other name

}  // namespace mckpt::impl
