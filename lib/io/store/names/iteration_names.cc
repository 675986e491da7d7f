// Iterations are iter_ and at least seven digits; a release has a name of its own.
#include "io/store/names/iteration_names.h"

#include <algorithm>
#include <charconv>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kFront = "iter_";
constexpr std::size_t kDigits = 7;

}  // namespace

std::string iteration_folder(std::optional<i64> iteration) {
  if (!iteration) return std::string(kReleaseName);
  std::string digits = cat(*iteration);
  return cat(kFront, std::string(kDigits - std::min(digits.size(), kDigits), '0'), digits);
}

bool is_iteration_folder(std::string_view name) { return name.starts_with(kFront) || name == kReleaseName; }

std::optional<i64> iteration_number(std::string_view folder) {
  if (!folder.starts_with(kFront)) return std::nullopt;
  std::string_view digits = folder.substr(kFront.size());
  i64 number = 0;
  auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (fault != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace mckpt::impl
