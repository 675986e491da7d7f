// What findings mean: which of them leave a checkpoint readable, and the error that the others become.
#include "io/store/findings.h"

#include <array>

#include "core/base/error.h"

namespace mckpt {

bool is_sound(const Store& store) { return first_problem(store.findings()) == nullptr; }

bool is_of_records(const Finding& finding) {
  constexpr std::array kCodes = {Code::kIncomplete,   Code::kChunkOutside,  Code::kChunkHole,
                                 Code::kChunkOverlap, Code::kRecordMissing, Code::kRecordOutside};
  return !finding.warning && std::ranges::find(kCodes, finding.code) != kCodes.end();
}

const Finding* first_problem(std::span<const Finding> findings) {
  auto at = std::ranges::find(findings, false, &Finding::warning);
  return at == findings.end() ? nullptr : &*at;
}

void require_sound(std::span<const Finding> findings, const std::string& root) {
  const Finding* first = first_problem(findings);
  if (first == nullptr) return;
  Error e(first->code, first->message);
  e.file(first->file.empty() ? root : first->file).tensor(first->tensor).offset(first->offset);
  if (i64 more = std::ranges::count(findings, false, &Finding::warning) - 1; more > 0)
    e.note(cat("and ", more, " more"));
  throw e.note(cat("found in ", escaped(root, 4096), ", which is not sound: mckpt verify reports all of it"))
      .help(first->help.empty() ? cat("mckpt verify ", escaped(root, 4096)) : first->help);
}

}  // namespace mckpt
