// The reasons why a layer pattern, or a pipeline stage of it, is refused. A refusal is a value: `mckpt
// pattern` prints it; code that needs a valid pattern throws pattern_error().
//
//   M[*E-]
//      ^ byte 3       moe_not_last_in_group: an E must be the last layer of its group
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;

// Only the grouped dialect has brackets; in the flat dialect they are invalid symbols.
enum class Dialect : u8 { kFlat, kGrouped };
std::string_view dialect_name(Dialect dialect);

enum class PatternFault : u8 {
  kInvalidSymbol,
  kUnclosedGroup,
  kUnopenedGroup,
  kEmptyGroup,
  kNestedGroup,
  kMoeNotLast,
  kMixedAttention,
  kMtpNotIdentical,
  kGroupInMtp,
  // From here on the pattern is valid and the pipeline is not.
  kUnevenWithPipes,
  kVppWithoutPipes,
  kSegmentsNotDivisible,
  kSegmentOutOfRange,
  kLayersNotDivisible,
  kMiddleNotDivisible,
  kStageOutOfRange,
  kSplitsGroup,
  // Ratios outside their range.
  kAssertion,
};

// Why a pattern or a stage is refused. A value without memory of the text, which the functions below take
// again.
struct PatternFailure {
  PatternFault fault;
  i64 byte = -1;       // of the pattern; -1 if the fault is not at one byte
  std::string detail;  // the numbers that do not fit, if there are any
};

// A value, or why there is none.
template <typename T>
using Checked = std::variant<T, PatternFailure>;

std::string_view fault_name(PatternFault fault);  // "invalid_symbol": stable, scripts match on it
std::string_view fault_title(PatternFault fault);
std::string_view fault_help(PatternFault fault);

// The sentence that says what is wrong, without the place: "'X': not a layer symbol here".
std::string fault_sentence(const PatternFailure& failure, std::string_view pattern);
// The failure as an error with code kBadPattern.
Error pattern_error(const PatternFailure& failure, std::string_view pattern);
[[noreturn]] void throw_pattern_error(const PatternFailure& failure, std::string_view pattern);

// The value, or the failure thrown.
template <typename T>
T value_or_throw(Checked<T> checked, std::string_view pattern) {
  if (const auto* failure = std::get_if<PatternFailure>(&checked)) throw_pattern_error(*failure, pattern);
  return std::get<T>(std::move(checked));
}

}  // namespace mckpt::impl
