// Prints what verify found: a line for each check that had something to look at, its findings below it, what
// was not read, and the verdict.
//
//   pass  coverage 45 tensors      each item in one chunk
//   FAIL  crc32    12 records      bytes against stored sums
//         problem[MC1010]: 18 tensors: ...   without -v at most 10 a check, alike but for the name as one
//   -     beside   not read: notes.txt
//   ckpt: 1 check failed; 1 file was not read
#include "tools/answers/verify_text.h"

#include <algorithm>
#include <set>

#include "convert/compare/activations.h"
#include "convert/compare/checks/module_copies.h"
#include "convert/compare/compare_sides.h"
#include "convert/compare/object_check.h"
#include "convert/compare/verify.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/store/finding.h"
#include "io/store/soundness.h"
#include "io/verify/verify.h"
#include "tools/answers/alike_findings.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostShown = 10;
constexpr std::size_t kAmountWidth = 15;  // of "7,408 values"

// The words of each check when it passes, and the things that it looks at otherwise: a line with them fits 60
// columns.
struct Subject {
  std::string_view check, passed, looked_at;
};
constexpr Subject kSubjects[] = {
    {"files", "are there, sizes fit", "presence and size"},
    {"format", "headers are well formed", "form of the headers"},
    {"index", "index and files agree", "index against files"},
    {"coverage", "each item in one chunk", "each item in one chunk"},
    {"items", "chunks fit the table", "chunks against the table"},
    {"crc32", "bytes fit stored sums", "bytes against stored sums"},
    {"values", "finite and plausible", "NaN, infinity, odd values"},
    {"experts", "no two with equal bytes", "experts with equal bytes"},
    {"parts", "names and objects agree", "names, layers, objects"},
    {"model", "config.json has them all", "tensors against config.json"},
    {"adapter", "fit adapter_config.json", "factors against adapter_config.json"},
    {"main", "weights are the optimizer's main weights, rounded", "weights against main weights"},
    {"ranks", "are one model", "ranks against each other"},
    {"optimizer", "", "states of the optimizer"},
    {"groups", "groups, options and states fit", "groups, options, states"},
    {"archive", "fit the index", "HDF5 files against the index"},
    {"manifest", "fit the manifest", "files against the manifest"},
    {"sums", "fit the sums kept", "files against kept sums"},
    {"assets", "are well-formed JSON", "config and other JSON"},
    {"below", "each by itself", "each by itself"},
    {"beside", "other files in the folder", "other files in the folder"},
    {"objects", "as in the source", "objects against the source"},
    {"against", "as in the source", "values against the source"},
    {"types", "as asked for", "types against those asked for"},
    {"digests", "SHA-256 as on the card", "SHA-256 against the card"},
    {"tensors", "values as on the card", "values against the card"},
    {"scales", "fit their codes", "scales against codes"},
    {"path", "", "damage of PATH"},
    {"source", "", "damage of the source"},
    {"casts", "values fit the wider type", "values that a cast rounds"},
    {"overflow", "", "values a cast cannot hold"},
};

// The check of assets in a comparison, where they are compared with the source's assets.
constexpr Subject kComparedAssets = {"assets", "are as they were copied", "copied files"};

// The manifest's own check leaves the data of tensors to the check of their sums, which a comparison makes of
// what it reads.
bool data_fit(const VerifyReport& report) {
  return std::ranges::none_of(report.findings,
                              [](const Finding& f) { return f.code == Code::kBadChecksum && !f.warning; });
}

std::string_view subject_of(const Check& check, bool compared, bool sums_fit) {
  if (check.name == "manifest" && check.status == Check::Status::kPass && !sums_fit)
    return "have its names and sizes";
  if (check.name == "groups" && check.status == Check::Status::kPass && check.unit == "groups")
    return "groups and options fit";  // no states were read
  const Subject* s = std::ranges::find(kSubjects, check.name, &Subject::check);
  if (compared && check.name == kComparedAssets.check) s = &kComparedAssets;
  if (s == std::end(kSubjects)) return "";
  return check.status == Check::Status::kPass ? s->passed : s->looked_at;
}

// Four columns wide, so that names line up.
std::string sign(const Output& out, Check::Status status) {
  switch (status) {
    case Check::Status::kNone:
      return out.styled(Style::kDim, "-   ");
    case Check::Status::kPass:
      return out.styled(Style::kGreen, "pass");
    case Check::Status::kWarn:
      return out.styled(Style::kYellow, "warn");
    case Check::Status::kFail:
      return out.styled(Style::kRed, "FAIL");
  }
  return "";
}

std::string pad(std::string text, std::size_t width) {
  return text.append(width - std::min(width, text.size()), ' ');
}

// The values that were not compared, in words.
std::string not_compared(const VerifyReport& report) {
  auto against = std::ranges::find(report.checks, "against", &Check::name);
  if (against == report.checks.end()) return "nothing could be compared";
  if (against->unseen > 0) return cat(counted(against->unseen, "tensor"), " could not be compared");
  std::vector<std::string> failed;
  for (const Check& c : report.checks)
    if (c.status == Check::Status::kFail) failed.push_back(c.name);
  if (failed.empty()) return "not everything was compared";
  return cat(failed.size() == 1 ? "check " : "checks ", listed(failed), " failed");
}

// Equal, and how: tensors of other types were compared after a cast. A type that was asked for is not news.
std::string verdict_of_equal(const VerifyReport& report) {
  if (std::ranges::find(report.checks, "types", &Check::name) != report.checks.end()) return "equal";
  auto have = [](i64 n) { return cat(counted(n, "tensor"), n == 1 ? " has" : " have"); };
  if (i64 n = report.rounded(); n > 0)
    return cat("equal after a cast that rounds; ", have(n),
               " a type that does not hold all values of the source's");
  if (i64 n = std::ranges::count(report.unlike, UnlikeTensor::Kind::kCast, &UnlikeTensor::kind); n > 0)
    return cat("equal in value; ", have(n), " another type");
  return "equal";
}

// `equal` is the library's answer. If it is false, the findings say whether a difference was found, or
// something could not be compared.
std::string verdict_of_comparison(const VerifyReport& report, bool equal) {
  if (equal) return verdict_of_equal(report);
  auto differs = [](const Finding& f) { return f.code == Code::kUnequal && !f.warning; };
  if (std::ranges::any_of(report.findings, differs)) return "not equal";
  return cat("not proven equal: ", not_compared(report));
}

// Only what is on the card was compared, so this says nothing about the values.
std::string verdict_of_card(const VerifyReport& report, bool as_card) {
  if (as_card) return "as on the card";
  std::set<std::string> files;
  for (const Finding& f : report.findings)
    if (!f.warning) files.insert(f.file);
  return cat("not as on the card: ", counted(std::ssize(files), "file"));
}

std::string_view not_done(bool compared) { return compared ? "not compared" : "not read"; }

// Whether the report of a part has it.
bool is_in_part(const NotRead& unread, const std::vector<VerifiedPart>& parts) {
  return std::ranges::any_of(
      parts, [&](const VerifiedPart& p) { return unread.path.starts_with(cat(p.path, "/")); });
}

void write_unread(Output& out, const VerifyReport& report, bool compared, bool all) {
  std::vector<std::string> names;
  for (const NotRead& u : report.unread)
    if (!is_in_part(u, report.parts))
      names.push_back(u.reason.empty() ? escaped(u.path) : cat(escaped(u.path), " (", u.reason, ")"));
  if (names.empty()) return;
  out.line(cat(out.styled(Style::kDim, "-   "), "  ", pad("beside", 9), not_done(compared), ": ",
               listed(names, all ? names.size() : kMostShown)));
}

// Files beside the tensors, such as config.json, that differ between two models, which is a warning there.
std::set<std::string> other_files(const VerifyReport& report) {
  std::set<std::string> files;
  for (std::size_t f = 0; f < report.findings.size(); f++)
    if (report.findings[f].code == Code::kUnequal &&
        report.checks[report.check_of[f]].name == kComparedAssets.check)
      files.insert(report.findings[f].file);
  return files;
}

// Checks that are there only where something was left out.
constexpr std::pair<std::string_view, std::string_view> kLeftOut[] = {
    {"optimizer", "the states of the optimizer were not compared"},
    {"nesting", "the nesting of the values was not compared"},
    {"carried", "attributes in records of torch DCP were not compared"},
    {"shards", "the other shards were not read"},
    {"states", "no optimizer was found"}};

// The part that the verdict does not cover, and values that a cast lost, which are equal to a conversion's:
// ", but 1 tensor has values that a cast made infinite and 1 file was not read".
std::string but_unread(const VerifyReport& report, bool good, bool compared) {
  std::vector<std::string> left_out;
  if (auto lost = std::ranges::find(report.checks, "overflow", &Check::name); lost != report.checks.end())
    left_out.push_back(cat(counted(lost->count, "tensor"), lost->count == 1 ? " has" : " have",
                           " values that a cast made infinite"));
  auto model = std::ranges::find(report.checks, "model", &Check::name);
  if (model != report.checks.end() && model->count == 0 && !model->note.empty())
    left_out.emplace_back("config.json was not compared");
  auto ranks = std::ranges::find(report.checks, "ranks", &Check::name);
  if (ranks != report.checks.end() && !ranks->note.empty())
    left_out.emplace_back(ranks->status == Check::Status::kNone ? "the ranks were not compared"
                                                                : "the order of the ranks was not checked");
  if (auto main = std::ranges::find(report.checks, "main", &Check::name);
      main != report.checks.end() && !main->note.empty())
    left_out.emplace_back("shards of tensor-parallel ranks were not compared with their main weights");
  for (auto [check, words] : kLeftOut)
    if (std::ranges::find(report.checks, check, &Check::name) != report.checks.end())
      left_out.emplace_back(words);
  if (auto inside = std::ranges::find(report.checks, "inside", &Check::name); inside != report.checks.end())
    left_out.push_back(cat("tensors inside of ", counted(inside->count, "object"), " were not read"));
  if (const i64 files = std::ssize(other_files(report)); compared && good && files > 0)
    left_out.push_back(cat(counted(files, "file"), files == 1 ? " differs" : " differ"));
  if (const std::string others = counted_others(report); !others.empty())
    left_out.push_back(cat(others, " not compared"));
  if (const std::string copies = counted_module_copies(report); !copies.empty())
    left_out.push_back(cat(copies, " not compared"));
  if (const std::string scales = counted_activation_scales(report); !scales.empty())
    left_out.push_back(cat(scales, " not compared"));
  // Where the answer is positive: otherwise each has a problem, or the others are what counts.
  if (const std::string objects = counted_unseen_objects(report); good && !objects.empty())
    left_out.push_back(cat(objects, " not compared"));
  if (const std::string unread = counted_unread(report.unread); !unread.empty())
    left_out.push_back(cat(unread, " ", not_done(compared)));
  if (left_out.empty()) return "";
  std::string text = std::string(good ? ", but " : "; ");
  for (std::size_t i = 0; i < left_out.size(); i++)
    text += cat(i == 0 ? "" : i + 1 < left_out.size() ? ", " : " and ", left_out[i]);
  return text;
}

// The findings of one check, and what helps.
void write_check_findings(Output& out, const VerifyReport& report, std::size_t check, bool all) {
  std::size_t shown = 0, hidden = 0;
  std::set<std::string> helps;
  bool objects = report.checks[check].name == "objects";
  for (const Alike& findings : alike(report, check, all)) {
    if (!findings.first.help.empty()) helps.insert(findings.first.help);
    if (all || shown++ < kMostShown)
      out.line(cat("      ", with_flags(line_of(findings, objects))));
    else
      hidden += findings.tensors.size();
  }
  if (hidden > 0) out.line(cat("      and ", hidden, " more; -v shows all"));
  for (const std::string& help : helps) out.line(cat("      help: ", with_flags(help)));
}

// "pass  coverage 45 tensors  each item in one chunk": how much was looked at, for what, and what could not be
// seen. A check that cannot apply to this format has no line.
void write_check(Output& out, const Check& check, bool compared, bool sums_fit) {
  if (check.status == Check::Status::kNone && check.note.empty()) return;
  std::string line = pad(check.name + ' ', 9);
  if (check.status == Check::Status::kNone || (check.count == 0 && check.unseen == 0)) {
    std::string_view none = check.status >= Check::Status::kWarn ? subject_of(check, compared, sums_fit) : "";
    line += !check.note.empty() ? check.note : std::string(none.empty() ? "nothing to check" : none);
  } else {
    std::string looked = looked_at(check);
    std::string_view subject = subject_of(check, compared, sums_fit);
    if (!subject.empty())
      looked = cat(pad(looked, kAmountWidth), looked.size() > kAmountWidth ? "; " : " ",
                   out.styled(Style::kDim, subject));
    line += check.note.empty() ? looked : cat(looked, "; ", check.note);
  }
  out.line(cat(sign(out, check.status), "  ", line));
}

i64 failed_checks(const VerifyReport& report) {
  return std::ranges::count(report.checks, Check::Status::kFail, &Check::status);
}

// "2 checkpoints, each sound", "1 of 3 checkpoints is not sound; 1 check failed".
std::string verdict_of_parts(const VerifyReport& report) {
  i64 all = std::ssize(report.parts), failed = failed_checks(report);
  i64 bad = std::ranges::count_if(report.parts, [](const VerifiedPart& p) { return !p.report.sound(); });
  std::string text = all == 1 ? "1 checkpoint, sound" : cat(all, " checkpoints, each sound");
  if (bad > 0) {
    text = cat(bad, " of ", counted(all, "checkpoint"), bad == 1 ? " is" : " are", " not sound");
    failed--;  // the check of the parts
  }
  if (failed > 0) return cat(text, "; ", counted(failed, "check"), " failed");
  return report.findings.empty() || bad > 0 ? text : cat(text, ", with warnings");
}

// Whether nothing is wrong with one rank's file but that the other ranks' parts are not in it.
bool is_sound_shard(const VerifyReport& report) {
  auto is = [&](Code code) {
    return std::ranges::find(report.findings, code, &Finding::code) != report.findings.end();
  };
  return is(Code::kShardAlone) && is(Code::kChunkHole) &&
         std::ranges::all_of(report.findings, [](const Finding& f) {
           return f.warning || (f.code == Code::kChunkHole && f.tensor.empty());
         });
}

// The last line: the answer in one or two words.
std::string verdict(const Verified& verified) {
  const VerifyReport& report = verified.report;
  if (verified.equal) return verdict_of_comparison(report, *verified.equal);
  if (verified.as_card) return verdict_of_card(report, *verified.as_card);
  if (!report.parts.empty()) return verdict_of_parts(report);
  if (is_sound_shard(report)) return "what is here is sound, and not proven whole: it is one rank's file";
  if (i64 failed = failed_checks(report); failed > 0) return cat(counted(failed, "check"), " failed");
  return report.findings.empty() ? "sound" : "sound, with warnings";
}

// Behind "sound": which sums were compared; without any, a flipped bit in a weight is a weight like any
// other.
std::string of_sums(const Verified& verified) {
  const VerifyReport& report = verified.report;
  if (verified.equal || verified.as_card || !report.sound()) return "";
  auto kept = std::ranges::find(report.checks, "sums", &Check::name);
  if (kept != report.checks.end() && kept->count > 0)
    return cat("; ", counted(kept->count, "file"), " compared with sums, ", kept->note);
  if (!report.parts.empty()) return "";
  bool sums = false, asked = false;
  for (const Check& c : report.checks) {
    asked |= c.name == "crc32";
    sums |= (c.name == "crc32" || c.name == "manifest" || c.name == "archive") && c.count > 0;
  }
  return asked && !sums ? "; no checksums to compare" : "";
}

// The checks with their findings, what was not read, and the verdict; for several checkpoints the checks of
// each come first.
void write_report(Output& out, const std::string& path, const Verified& verified, const GlobalFlags& flags) {
  bool all = flags.verbose > 0, compared = verified.equal.has_value();
  const VerifyReport& report = verified.report;
  for (const VerifiedPart& part : report.parts) {
    write_report(out, cat(path, path.ends_with('/') ? "" : "/", part.path), {.report = part.report}, flags);
    if (!flags.quiet) out.line("");
  }
  for (std::size_t c = 0; c < report.checks.size(); c++) {
    if (report.checks[c].name == "below") continue;  // the parts have its findings
    if (!flags.quiet || report.checks[c].status > Check::Status::kPass)
      write_check(out, report.checks[c], compared, data_fit(report));
    write_check_findings(out, report, c, all);
  }
  if (!flags.quiet) write_unread(out, report, compared, all);
  out.line(cat(escaped(path, 4096), ": ", verdict(verified), but_unread(report, report.sound(), compared),
               of_sums(verified)));
}

}  // namespace

void write_verified_text(Output& out, const std::string& path, const Verified& verified,
                         const GlobalFlags& flags) {
  write_report(out, path, verified, flags);
}

}  // namespace mckpt::impl
