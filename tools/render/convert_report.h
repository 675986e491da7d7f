// The account of a conversion: what went in, what came out, and what became of it. Every mode fills in the
// same.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/base/int.h"
#include "io/copy/lost_values.h"
#include "tools/options/command_line.h"

namespace mckpt {

struct ConvertReport {
  i64 tensors_in = 0, tensors_out = 0;
  i64 copied = 0;  // bit for bit
  i64 fused = 0, split = 0, padded = 0, changed = 0;
  i64 dropped = 0;  // left out, because the user said so
  i64 dropped_objects =
      0;             // what is no tensor, left out likewise or because the new format has no such thing
  i64 invented = 0;  // not made from the source
  i64 rounded = 0;   // items to which their rule adds a constant, and which lose by it
  i64 infinite = 0;  // items that were finite before a cast
  i64 zero = 0;      // items that were not before one
  std::vector<LostValues::Tensor> overflowed;
  i64 tied = 0;  // share their bytes with another tensor of the source
  i64 bytes = 0, bytes_read = 0;
  std::string output;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

// "plan    19 in -> 19 out: 19 copied; dropped 0, invented 0", on stderr.
void note_plan(const GlobalFlags& flags, const ConvertReport& report);

// The answer: the path of the output, or the account as JSON; that goes into `file` as well. `command` is
// "convert" or "export". On stderr how fast it went, unless nothing was done.
void write_report(const GlobalFlags& flags, std::string_view command, const ConvertReport& report, bool done,
                  const std::optional<std::string>& file);

}  // namespace mckpt
