// Reads tolerances: the last "=" separates the GLOB, commas separate the parts.
#include "convert/compare/diff/tolerance_text.h"

#include <charconv>
#include <cmath>

#include "convert/compare/diff/diff.h"
#include "core/base/error.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kForm = "[GLOB=]rtol:X, atol:X or ulp:N, or several of them with commas between";

Error bad_tolerance(std::string_view text) {
  return Error(Code::kUsage, "a tolerance is not understood")
      .expected(kForm)
      .found(cat("'", escaped(text), "'"));
}

template <typename Number>
bool reads(std::string_view text, Number& to) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), to);
  return fault == std::errc{} && end == text.data() + text.size() && is_tolerance(static_cast<double>(to));
}

// One part, such as "rtol:1e-3".
bool add_part(std::string_view part, Tolerance& to) {
  if (part.starts_with("rtol:")) return reads(part.substr(5), to.relative);
  if (part.starts_with("atol:")) return reads(part.substr(5), to.absolute);
  return part.starts_with("ulp:") && reads(part.substr(4), to.ulps);
}

}  // namespace

bool is_tolerance(double number) { return number >= 0 && std::isfinite(number); }

void add_tolerance(ToleranceRules& rules, std::string_view text) {
  std::size_t equals = text.rfind('=');
  std::string_view rest = equals == text.npos ? text : text.substr(equals + 1);
  if (rest.ends_with(',')) throw bad_tolerance(text);
  Tolerance within = equals == text.npos ? rules.otherwise : Tolerance{};
  do {
    std::size_t comma = std::min(rest.find(','), rest.size());
    if (!add_part(rest.substr(0, comma), within)) throw bad_tolerance(text);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  } while (!rest.empty());
  if (equals == text.npos) {
    rules.otherwise = within;
  } else {
    if (equals == 0) throw bad_tolerance(text);
    rules.rules.push_back({std::string(text.substr(0, equals)), within});
  }
}

}  // namespace mckpt::impl
