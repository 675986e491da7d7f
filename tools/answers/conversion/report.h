// The account of a conversion, as text before the conversion runs and as the answer after it.
//
//   {"schema": "mckpt.convert/1", "ok": true, "tensors_in": 45, "tensors_out": 41, "copied": 39, "fused": 2,
//    "split": 0, "tied": 0, "padded": 0, "changed": 0, ..., "dropped": 0, "invented": 0, ..., "output": "ckpt"}
//
// The counts come from the proof (convert/jobs/proof.h), so they are the same with --dry-run.
#pragma once

#include <optional>
#include <string>

namespace mckpt::impl {

struct Conversion;
struct GlobalFlags;
struct RunResult;

// "plan    19 in -> 19 out: 19 copied; dropped 0, invented 0", on stderr.
void note_plan(const GlobalFlags& flags, const Conversion& conversion);

// The answer: the path of the output, or the account as JSON; the JSON is also written into `file` if one is
// given, there with the account tensor by tensor if the conversion has it. `command` is "convert" or
// "export". Prints on stderr how fast the conversion was. `result`: null for a dry run.
void write_report(const GlobalFlags& flags, std::string_view command, const Conversion& conversion,
                  const RunResult* result, double seconds, const std::optional<std::string>& file);

}  // namespace mckpt::impl
