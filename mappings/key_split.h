// How a fused parameter is split into keys of fsdp_dtensor: linear_fc1.weight is stored as ..._w and ..._v.
#pragma once

namespace mckpt::impl {

// The parts of a fused parameter, and how it is split into keys on disk.
enum class KeySplit { kNone, kSwiglu, kGdnInProj, kGdnConv, kMambaInProj, kMambaConv, kMlaDown };

}  // namespace mckpt::impl
