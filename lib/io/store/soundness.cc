// Judges the findings of a checkpoint's readers, and words them. Names from files are escaped here, so that
// no control bytes of a file reach a terminal.
#include "io/store/soundness.h"
#include "core/base/error.h"
#include "io/store/store.h"

#include <algorithm>
#include <array>

namespace mckpt::impl {

bool is_sound(const Store& store) { return std::ranges::all_of(store.findings(), &Finding::warning); }

bool is_of_records(const Finding& finding) {
  constexpr std::array kCodes = {Code::kIncomplete,   Code::kChunkOutside,  Code::kChunkHole,
                                 Code::kChunkOverlap, Code::kRecordMissing, Code::kRecordOutside};
  return !finding.warning && std::ranges::find(kCodes, finding.code) != kCodes.end();
}

namespace {

// The problem that an error leads with: one of a file explains the problems of its tensors. A finding that
// only counts the rest of a kind ("and 10 more of this kind", io/store/findings.h) explains nothing.
std::span<const Finding>::iterator leading(std::span<const Finding> findings) {
  auto counts_others = [&](const Finding& f) {
    return f.file.empty() && f.tensor.empty() &&
           std::any_of(findings.data(), &f, [&](const Finding& before) { return before.code == f.code; });
  };
  auto of_file = [&](const Finding& f) { return !f.warning && f.tensor.empty() && !counts_others(f); };
  auto first = std::ranges::find_if(findings, of_file);
  return first != findings.end() ? first : std::ranges::find(findings, false, &Finding::warning);
}

}  // namespace

void require_sound(std::span<const Finding> findings, const std::string& root) {
  auto first = leading(findings);
  if (first == findings.end()) return;
  Error e(first->code, first->message);
  e.file(first->file.empty() ? root : first->file).tensor(first->tensor).offset(first->offset);
  if (i64 more = std::ranges::count(findings, false, &Finding::warning) - 1; more > 0)
    e.note(cat("and ", more, " more"));
  // Files whose codes are not decoded are sound, and `verify` says so.
  const bool sound =
      std::ranges::all_of(findings, [](const Finding& f) { return f.warning || f.code == Code::kQuantized; });
  if (!sound) e.note(cat(escaped(root, 4096), " is not sound; mckpt verify lists all its problems"));
  e.help(first->help.empty() ? cat("mckpt verify ", escaped(root, 4096)) : first->help);
  std::vector<Finding> others(findings.begin(), first);
  others.insert(others.end(), first + 1, findings.end());
  throw DamagedCheckpoint(std::move(e), std::move(others), root);
}

std::string finding_kind(const Finding& finding) {
  return cat(finding.warning ? "warning" : "problem", "[", code_name(finding.code), "]");
}

std::string finding_text(const Finding& f) {
  std::string out;
  if (!f.file.empty()) out += cat(escaped(f.file, 4096), ": ");
  if (f.rank >= 0) out += cat("rank ", f.rank, ": ");
  if (!f.tensor.empty()) out += cat("tensor '", escaped(f.tensor), "': ");
  out += f.message;
  if (f.offset >= 0) out += cat(" (byte ", with_commas(f.offset), ")");
  return out;
}

std::string finding_line(const Finding& finding) {
  return cat(finding_kind(finding), ": ", finding_text(finding));
}

}  // namespace mckpt::impl
