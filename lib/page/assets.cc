// The table of assets, which CMake makes of the files.
#include "page/assets.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

struct Asset {
  std::string_view name, text;
};
constexpr Asset kAssets[] = {
#include "page/assets.inc"
};

}  // namespace

std::string_view page_asset(std::string_view name) {
  auto found = std::ranges::find(kAssets, name, &Asset::name);
  if (found == std::end(kAssets)) throw Error(Code::kInternal, cat("there is no asset ", name));
  return found->text;
}

}  // namespace mckpt::impl
