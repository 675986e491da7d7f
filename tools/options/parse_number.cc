// Reads numbers, sizes such as 5GB, and data types. A text must be used up to its end: "12x" is an error and
// not 12. Units count in tens (5GB = 5,000,000,000) or, with an i, in powers of two (5GiB = 5,368,709,120).
#include "tools/options/parse_number.h"

#include <cctype>
#include <charconv>

#include "core/base/error.h"
#include "core/items/dtype.h"

namespace mckpt::impl {
namespace {

[[noreturn]] void bad_number(std::string_view text, std::string_view option, const char* wanted) {
  throw Error(Code::kUsage, cat(option, ": not ", wanted)).found(cat("'", escaped(text), "'"));
}

}  // namespace

i64 parse_i64(std::string_view text, std::string_view option) {
  i64 v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec == std::errc::result_out_of_range)
    throw Error(Code::kUsage, cat(option, ": the number does not fit 63 bits")).found(escaped(text));
  if (ec != std::errc{} || end != text.data() + text.size()) bad_number(text, option, "a whole number");
  return v;
}

double parse_double(std::string_view text, std::string_view option) {
  double v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc{} || end != text.data() + text.size()) bad_number(text, option, "a number");
  return v;
}

// A fraction is accepted, as in 1.5GB; the product is cut to whole bytes.
i64 parse_bytes(std::string_view text, std::string_view option) {
  struct Unit {
    std::string_view name;
    i64 bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"b", 1},
                                    {"k", 1000},
                                    {"kb", 1000},
                                    {"kib", 1ll << 10},
                                    {"m", 1000000},
                                    {"mb", 1000000},
                                    {"mib", 1ll << 20},
                                    {"g", 1000000000},
                                    {"gb", 1000000000},
                                    {"gib", 1ll << 30},
                                    {"t", 1000000000000},
                                    {"tb", 1000000000000},
                                    {"tib", 1ll << 40}};
  double number = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& u : kUnits)
    if (u.name == unit && ec == std::errc{} && number >= 0 && number * static_cast<double>(u.bytes) < 9e18)
      return static_cast<i64>(number * static_cast<double>(u.bytes));
  bad_number(text, option, "a size such as 5GB, 512MiB or 1048576");
}

// A name that is not known is an error of the command line (kUsage), and not one of a file.
DType parse_dtype(std::string_view text, std::string_view option) {
  try {
    return dtype_from_name(text);
  } catch (const Error& e) {
    throw Error(Code::kUsage, cat(option, ": ", e.message())).help(e.help());
  }
}

}  // namespace mckpt::impl
