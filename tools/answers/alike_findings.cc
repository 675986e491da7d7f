// Findings without a tensor, or with a place in a file, are lines of their own.
#include "tools/answers/alike_findings.h"

#include <map>
#include <utility>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/store/soundness.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

std::vector<Alike> alike(const VerifyReport& report, std::size_t check, bool apart) {
  std::vector<Alike> out;
  std::map<std::string, std::size_t> place;
  for (std::size_t f = 0; f < report.findings.size(); f++) {
    if (report.check_of[f] != check) continue;
    const Finding& finding = report.findings[f];
    bool alone = apart || finding.tensor.empty() || finding.offset >= 0 || finding.rank >= 0;
    std::string form =
        alone ? cat("\n", f) : cat(code_name(finding.code), "\n", finding.file, "\n", finding.message);
    auto [at, is_new] = place.try_emplace(std::move(form), out.size());
    if (is_new) out.push_back({finding, {}});
    out[at->second].tensors.push_back(finding.tensor);
  }
  return out;
}

std::string line_of(const Alike& findings, bool objects) {
  Finding f = findings.first;
  if (findings.tensors.size() == 1 && !(objects && !f.tensor.empty())) return finding_line(f);
  std::vector<std::string> names;
  for (const std::string& name : findings.tensors) names.push_back(escaped(name));
  std::string_view what = objects ? "object" : "tensor";
  i64 count = std::ssize(names);
  f.message =
      cat(count == 1 ? cat(what, " '", names[0], "'") : cat(counted(count, what), ", ", listed(names, 2)),
          ": ", f.message);
  f.tensor.clear();
  return finding_line(f);
}

}  // namespace mckpt::impl
