// Lines of the engine's reports as lines of the interface, and the part that every report has: Report and
// Diff have the fields `checks`, `unread` and `unread_paths`, and a list of findings.
//
//   {"coverage", Check::Status::kPass, 45, "tensors"}  ->  {.name = "coverage", .status = "pass", .count = 45, ...}
#pragma once

#include <string>
#include <vector>

#include "api/public_notes.h"
#include "core/base/text.h"
#include "io/store/soundness.h"
#include "io/verify/verify.h"
#include "mckpt/verify.h"

namespace mckpt::impl {

inline mckpt::Check to_public(const Check& c) {
  return {c.name, std::string(status_name(c.status)), c.count, c.unit, c.unseen, c.note};
}

inline std::string to_public(const NotRead& n) {
  const std::string why = n.why();
  return why.empty() ? n.path : cat(n.path, " (", why, ")");
}

// The checks that were made and what was not read; and behind the findings in `to` the oddities of both
// sides.
template <typename PublicReport>
void add_public(const VerifyReport& from, const std::vector<Oddities>& oddities, PublicReport& report,
                std::vector<mckpt::Finding>& to) {
  for (const Check& c : from.checks) report.checks.push_back(to_public(c));
  for (const NotRead& n : from.unread) {
    report.unread.push_back(to_public(n));
    report.unread_paths.push_back(n.path);
  }
  for (const Oddities& o : oddities)
    for (const Finding& f : o.findings) to.push_back(to_public(f));
}

}  // namespace mckpt::impl
