// The module that has the layers of an MTP depth, which versions of Megatron-Core name differently:
//
//   mtp.layers.0.mtp_model_layer.x     the usual name, which tables of models have: Megatron-Core 0.19
//   mtp.layers.0.transformer_layer.x   Megatron-Core up to 0.16; GPT models in torch_dist of every version
//
// Readers take both names. This is the only place where they are written down as a pair.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

inline constexpr std::string_view kMtpModule = "mtp_model_layer", kOldMtpModule = "transformer_layer";

// The name with the usual module of MTP in place of the old one, wherever in the name the depth is.
std::string with_usual_mtp(std::string name);
// Both names of a parameter of MTP that has its usual name, that one first; any other name alone.
std::vector<std::string> mtp_names(std::string_view name);
// The name that Megatron-Core up to 0.16 gives the parameter at run time. Nothing for a parameter that is not
// in the layers of MTP, or is in the layers of a hybrid model ("mtp_model_layer.layers.1."), which has no MTP
// there.
std::optional<std::string> old_mtp_name(std::string_view name);

}  // namespace mckpt::impl
