// The names in the folder of a training run, as Megatron gives them:
//
//   run/latest_checkpointed_iteration.txt    "10", or "release": the tracker, which names what is loaded
//   run/iter_0000010/                        iteration 10, with at least seven digits
//   run/release/                             a checkpoint without an iteration, such as a converted one
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

inline constexpr std::string_view kTrackerName = "latest_checkpointed_iteration.txt";
inline constexpr std::string_view kReleaseName = "release";

// "iter_0000010"; "release" for no iteration.
std::string iteration_folder(std::optional<i64> iteration);
// Whether a folder is one of an iteration, by its name.
bool is_iteration_folder(std::string_view name);
// The number of "iter_0000010"; nothing for any other name.
std::optional<i64> iteration_number(std::string_view folder);

}  // namespace mckpt::impl
