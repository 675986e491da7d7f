// Buffers of Megatron, transformers and torchtitan.
#include "io/dcp/keys/without_states.h"

#include <algorithm>

namespace mckpt::impl {

bool is_without_states(std::string_view name) {
  constexpr std::string_view kBuffers[] = {
      "_extra_state", "expert_bias", "expert_bias_E", "e_score_correction_bias", "inv_freq", "layer_scalar",
  };
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return std::ranges::find(kBuffers, last) != std::end(kBuffers);
}

}  // namespace mckpt::impl
