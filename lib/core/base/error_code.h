// Every error code: its number from error_numbers.inc; its exit status, title and explanation from
// error_codes.inc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mckpt::impl {

// The exit statuses of the program. Each code has one, so a script can react to kinds of failure without
// reading text.
enum class Exit : int {
  kOk = 0,             // done, equal, healthy
  kNo = 1,             // the answer is negative: different, or problems found
  kUsage = 2,          // the command line is wrong
  kInput = 3,          // input missing, corrupt or unsupported
  kRefused = 4,        // refused before anything was written
  kWrite = 5,          // writing failed
  kInterrupted = 130,  // stopped by a signal, resumable; SIGTERM makes it 143, SIGHUP 129
};

// The codes, with their numbers as values.
enum class Code : std::uint16_t {
#define MCKPT_CODE(name, number) name = number,
#include "core/base/error_numbers.inc"
#undef MCKPT_CODE
};

// A row of the table; it lives as long as the program.
struct CodeInfo {
  Code code;
  Exit exit;
  std::string_view title;
  std::string_view explanation;
};

std::span<const CodeInfo> all_codes();  // in ascending order
// The row of a code, found by a walk over the table.
const CodeInfo& code_info(Code code);
std::string code_name(Code code);  // "MC0102"

}  // namespace mckpt::impl
