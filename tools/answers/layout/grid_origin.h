// Where a number of a laid out grid comes from.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

// {"tp", "2", "args"}
struct GridOrigin {
  std::string_view name;
  std::string value;
  std::string_view from;  // one of these:
};
inline constexpr std::string_view kFromOption = "option", kFromArgs = "args", kFromBoxes = "boxes",
                                  kByDefault = "default";

}  // namespace mckpt::impl
