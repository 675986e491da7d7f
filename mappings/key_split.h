// How a fused parameter is split into keys of fsdp_dtensor:
//
//   kSwiglu      linear_fc1.weight   ->   linear_fc1.weight_w (gate), linear_fc1.weight_v (up)
//   kGdnInProj   in_proj.weight      ->   in_proj.weight.query, .key, .value, .z, .beta, .alpha
#pragma once

namespace mckpt::impl {

// The split of a row. Which pieces it makes, and where each begins: pieces_of() in mappings/rule.h.
enum class KeySplit { kNone, kSwiglu, kGdnInProj, kGdnConv, kMambaInProj, kMambaConv, kMlaDown };

}  // namespace mckpt::impl
