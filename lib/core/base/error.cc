// The table of codes, and how the facts of an error become one line:
//
//   model.safetensors: tensor 'lm_head.weight': a dimension is negative: expected 0 or more, found -3
#include "core/base/error.h"

#include <algorithm>
#include <array>

#include "core/base/int.h"

namespace mckpt::impl {
namespace {

constexpr CodeInfo kCodes[] = {
#define MCKPT_ERROR(name, exit, title, explanation) {Code::name, Exit::exit, title, explanation},
#include "core/base/error_codes.inc"
#undef MCKPT_ERROR
};

constexpr Code kNumbers[] = {
#define MCKPT_CODE(name, number) Code::name,
#include "core/base/error_numbers.inc"
#undef MCKPT_CODE
};

// Every number has its row, in the same order.
constexpr bool rows_fit() {
  if (std::size(kCodes) != std::size(kNumbers)) return false;
  for (std::size_t i = 0; i < std::size(kCodes); ++i)
    if (kCodes[i].code != kNumbers[i] || (i > 0 && kNumbers[i] <= kNumbers[i - 1])) return false;
  return true;
}
static_assert(rows_fit(), "error_codes.inc and error_numbers.inc list different codes");

}  // namespace

std::span<const CodeInfo> all_codes() { return kCodes; }

// A linear search: errors are rare.
const CodeInfo& code_info(Code code) {
  for (const CodeInfo& info : kCodes)
    if (info.code == code) return info;
  return kCodes[std::size(kCodes) - 1];  // kInternal: cannot happen, every number has a row
}

// At least four digits: 5 is "MC0005".
std::string code_name(Code code) {
  std::string digits = cat(static_cast<int>(code));
  return cat("MC", std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0'), digits);
}

// Not inline: the throwing code stays small, and g++ 12 warns of overflows in strings that cannot happen.
Error& Error::each_note(std::span<const std::string> lines, std::size_t most) {
  for (const std::string& line : lines.first(std::min(lines.size(), most))) note(line);
  return lines.size() > most ? note(cat("and ", lines.size() - most, " more")) : *this;
}

Error& Error::set(std::string& field, std::string_view v) {
  field = v;
  return *this;
}

// Composed when it is asked for. If there is no memory for the line, the message alone.
const char* Error::what() const noexcept {
  try {
    what_.clear();
    if (!file_.empty()) what_ += cat(escaped(file_, 4096), ": ");
    if (!tensor_.empty()) what_ += cat("tensor '", escaped(tensor_), "': ");
    what_ += message_;
    if (!expected_.empty()) what_ += cat(": expected ", expected_);
    if (!found_.empty()) what_ += cat(expected_.empty() ? ": found " : ", found ", found_);
    return what_.c_str();
  } catch (...) {
    return message_.c_str();
  }
}

// Not inline, so that checked_add() and the others stay two instructions.
void throw_overflow(i64 a, const char* op, i64 b, const char* what) {
  throw Error(Code::kSizeOverflow, cat(what, " does not fit 63 bits"))
      .found(cat(a, " ", op, " ", b))
      .help("check the sizes; no real tensor is that large");
}

}  // namespace mckpt::impl
