// The account of a conversion, as text before it runs and as the answer behind it.
#pragma once

#include <optional>
#include <string>

namespace mckpt::impl {

struct Conversion;
struct GlobalFlags;
struct RunResult;

// "plan    19 in -> 19 out: 19 copied; dropped 0, invented 0", on stderr.
void note_plan(const GlobalFlags& flags, const Conversion& conversion);

// The answer: the path of the output, or the account as JSON; that is written into `file` as well. `command` is
// "convert" or "export". Prints on stderr how fast it was. `result`: null for a dry run.
void write_report(const GlobalFlags& flags, std::string_view command, const Conversion& conversion,
                  const RunResult* result, double seconds, const std::optional<std::string>& file);

}  // namespace mckpt::impl
