#include "tools/render/findings.h"

#include <algorithm>
#include <array>

#include "runtime/comm/world.h"
#include "tools/render/setting_names.h"

namespace mckpt {
namespace {

constexpr std::size_t kMostShown = 5;

const Finding* first_problem(std::span<const Finding> findings) {
  auto at = std::ranges::find(findings, false, &Finding::warning);
  return at == findings.end() ? nullptr : &*at;
}

}  // namespace

bool is_sound(const Store& store) {
  return std::all_of(store.findings().begin(), store.findings().end(),
                     [](const Finding& f) { return f.warning; });
}

bool is_of_records(const Finding& finding) {
  constexpr std::array kCodes = {Code::kIncomplete,   Code::kChunkOutside,  Code::kChunkHole,
                                 Code::kChunkOverlap, Code::kRecordMissing, Code::kRecordOutside};
  return !finding.warning && std::ranges::find(kCodes, finding.code) != kCodes.end();
}

void require_sound(std::span<const Finding> findings, const std::string& root) {
  const Finding* first = first_problem(findings);
  if (first == nullptr) return;
  Error e(first->code, first->message);
  e.file(first->file.empty() ? root : first->file).tensor(first->tensor).offset(first->offset);
  if (i64 more = std::ranges::count(findings, false, &Finding::warning) - 1; more > 0)
    e.note(cat("and ", more, " more"));
  throw e.note(cat("found in ", escaped(root, 4096), ", which is not sound: mckpt verify tells all of it"))
      .help(first->help.empty() ? cat("mckpt verify ", escaped(root, 4096)) : first->help);
}

void require_sound(const GlobalFlags& flags, std::span<const Finding> findings, const std::string& root) {
  tell_findings(flags, findings, root, first_problem(findings));
  require_sound(findings, root);
}

std::string finding_line(bool color, const Finding& f) {
  std::string kind = cat(f.warning ? "warning" : "problem", "[", code_name(f.code), "]");
  std::string out = cat(paint(color, f.warning ? Style::kYellow : Style::kRed, kind), ": ");
  if (!f.file.empty()) out += cat(escaped(f.file, 4096), ": ");
  if (f.rank >= 0) out += cat("rank ", f.rank, ": ");
  if (!f.tensor.empty()) out += cat("tensor '", escaped(f.tensor), "': ");
  out += with_flags(f.message);
  if (f.offset >= 0) out += cat(" (byte ", with_commas(f.offset), ")");
  return out;
}

void write_findings(JsonWriter& json, std::span<const Finding> findings) {
  auto text = [&](std::string_view name, const std::string& value) {
    value.empty() ? json.null_field(name) : json.field(name, value);
  };
  json.begin_array();
  for (const Finding& f : findings) {
    json.begin_object().field("code", code_name(f.code));
    text("tensor", f.tensor);
    f.rank < 0 ? json.null_field("rank") : json.field("rank", static_cast<i64>(f.rank));
    text("file", f.file);
    f.offset < 0 ? json.null_field("offset") : json.field("offset", f.offset);
    json.field("message", with_flags(f.message));
    text("help", with_flags(f.help));
    json.field("warning", f.warning).end_object();
  }
  json.end_array();
}

void accept(std::vector<Finding>& findings, std::span<const std::string> codes) {
  constexpr std::array kTakable = {Code::kCounterpart, Code::kNumberGap, Code::kPipelineLoss,
                                   Code::kMixedSaves};
  for (const std::string& name : codes) {
    auto code = std::ranges::find(kTakable, name, code_name);
    if (code == kTakable.end())
      throw Error(Code::kUsage, "--accept takes codes of damage that leaves the rest convertible")
          .expected("MC1311, MC1312, MC1313 or MC1315")
          .found(escaped(name));
    for (Finding& f : findings) f.warning |= f.code == *code;
  }
  for (Finding& f : findings)
    if (!f.warning && std::ranges::find(kTakable, f.code) != kTakable.end())
      f.help += cat(f.help.empty() ? "" : "; ", "--accept ", code_name(f.code), " takes it as it is");
}

void tell_findings(const GlobalFlags& flags, std::span<const Finding> findings, const std::string& root,
                   const Finding* told) {
  if (launch().rank != 0) return;  // all ranks find the same
  bool color = stderr_color(flags);
  std::vector<const Finding*> order;
  for (bool warning : {false, true})
    for (const Finding& f : findings)
      if (f.warning == warning && &f != told && !(warning && flags.quiet)) order.push_back(&f);
  std::size_t shown = flags.verbose > 0 ? order.size() : std::min(order.size(), kMostShown);
  for (std::size_t i = 0; i < shown; i++) complain(finding_line(color, *order[i]));
  if (order.empty()) return;
  std::string more = shown < order.size() ? cat(" (", order.size() - shown, " more: -v)") : "";
  complain(cat("found in ", escaped(root, 4096), more, "; mckpt verify checks all of it"));
}

Exit report_findings(const GlobalFlags& flags, const Store& store) {
  tell_findings(flags, store.findings(), store.root());
  return is_sound(store) ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt
