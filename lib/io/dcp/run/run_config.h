// The configuration of a run of Megatron-Bridge, which lies beside the data and is all that such a run says
// of its model:
//
//   run_config.yaml   model:
//                       layernorm_zero_centered_gamma: false      model_entry(text, "rotary_base") -> "10000"
//                       rotary_base: 10000
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mckpt::impl {

class Store;

inline constexpr std::string_view kRunConfigName = "run_config.yaml";

// Its text; "" where the folder has no such file, or it cannot be read. A file larger than 4 MiB is read in
// part.
std::string run_config_text(const Store& store);
// The value of an entry of its section "model", if that is one word on the entry's line.
std::optional<std::string_view> model_entry(std::string_view text, std::string_view key);

}  // namespace mckpt::impl
