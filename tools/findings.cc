#include "tools/findings.h"

#include <algorithm>

namespace mckpt {
namespace {

constexpr std::size_t kMostShown = 5;

}  // namespace

bool is_sound(const Store& store) {
  return std::all_of(store.findings().begin(), store.findings().end(),
                     [](const Finding& f) { return f.warning; });
}

std::string finding_line(bool color, const Finding& f) {
  std::string kind = cat(f.warning ? "warning" : "problem", "[", code_name(f.code), "]");
  std::string out = cat(paint(color, f.warning ? Style::kYellow : Style::kRed, kind), ": ");
  if (!f.file.empty()) out += cat(escaped(f.file, 4096), ": ");
  if (f.rank >= 0) out += cat("rank ", f.rank, ": ");
  if (!f.tensor.empty()) out += cat("tensor '", escaped(f.tensor), "': ");
  out += f.message;
  if (f.offset >= 0) out += cat(" (byte ", with_commas(f.offset), ")");
  return out;
}

Exit report_findings(const GlobalFlags& flags, const Store& store) {
  bool color = stderr_color(flags);
  std::vector<const Finding*> order;
  for (bool warning : {false, true})
    for (const Finding& f : store.findings())
      if (f.warning == warning && !(warning && flags.quiet)) order.push_back(&f);
  std::size_t shown = flags.verbose > 0 ? order.size() : std::min(order.size(), kMostShown);
  for (std::size_t i = 0; i < shown; i++) complain(finding_line(color, *order[i]));
  if (order.empty()) return Exit::kOk;
  std::string more = shown < order.size() ? cat(" (", order.size() - shown, " more: -v)") : "";
  complain(cat("found in ", escaped(store.root(), 4096), more, "; mckpt verify checks all of it"));
  return is_sound(store) ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt
