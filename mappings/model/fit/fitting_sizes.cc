// Sizes are tried one by one.
#include "mappings/model/fit/fitting_sizes.h"

#include "core/base/text.h"

namespace mckpt::impl {

std::string sizes_that_fit(std::string_view setting, const std::function<bool(i64)>& fits) {
  constexpr i64 kMost = 256;
  std::string out;
  for (i64 size = 1; size <= kMost; size++)
    if (fits(size)) out += cat(out.empty() ? "" : ", ", size);
  return out.empty() ? "" : cat("sizes that fit: `", setting, "` ", out);
}

std::string sizes_that_divide(std::string_view setting, i64 number) {
  return sizes_that_fit(setting, [&](i64 size) { return number % size == 0; });
}

}  // namespace mckpt::impl
