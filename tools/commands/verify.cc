// mckpt verify: whether a checkpoint is whole and sound by itself.
#include "io/verify/verify.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "io/file/parallel.h"
#include "io/file/source_stamps.h"
#include "io/store/beside.h"
#include "tools/commands/commands.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/setting_names.h"
#include "tools/render/text_table.h"
#include "tools/verify_against.h"
#include "tools/verify_beside.h"

namespace mckpt {
namespace {

constexpr std::size_t kMostShown = 10;

// What cannot be judged at all stays an error; what is there and broken is an answer.
bool is_an_answer(Code code) {
  return code != Code::kNotFound && code != Code::kReadFailed && code != Code::kUnknownFormat &&
         code != Code::kModuleMissing;
}

bool is_folder_of_folders(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && !is_checkpoint_folder(Folder(path), "");
}

// Null where the checkpoint cannot be opened and that is the answer. `parts`: what verifies a folder that is
// none, but has some in it; returns whether it has.
std::unique_ptr<Store> open_for_report(const std::string& path, VerifyReport& report,
                                       const std::function<bool()>& parts) {
  try {
    return open_store(path);
  } catch (const Error& e) {
    if (e.code() == Code::kUnknownFormat && parts && is_folder_of_folders(path) && parts()) return nullptr;
    if (code_info(e.code()).exit != Exit::kInput || !is_an_answer(e.code())) throw;
    report = unreadable_report(e);
    return nullptr;
  }
}

VerifyReport verified(const GlobalFlags& flags, const Store& store, const std::string& path, int threads) {
  VerifyReport report;
  NameSet<std::string> judged = check_checkpoint(store, "verify", threads, flags, report);
  check_beside(path, &store, judged, threads, flags, report);
  return report;
}

// A file that was changed meanwhile is a finding, whatever the checks found in it. Returns whether there is
// none.
bool check_unchanged(const std::string& path, VerifyReport& report) {
  try {
    check_sources_unchanged();
    return true;
  } catch (const Error& e) {
    Finding finding = to_finding(e);
    if (std::string root = path + "/"; finding.file.starts_with(root)) finding.file.erase(0, root.size());
    auto files = std::ranges::find(report.checks, "files", &Check::name);
    if (files == report.checks.end()) files = report.checks.insert(files, {.name = "files", .unit = "files"});
    files->status = Check::Status::kFail;
    // First: the others may be its consequences, and few are shown.
    report.check_of.insert(report.check_of.begin(), static_cast<std::size_t>(files - report.checks.begin()));
    report.findings.insert(report.findings.begin(), std::move(finding));
    return false;
  }
}

// A folder of folders, such as accelerate's, is no checkpoint by itself: each that is in it is verified.
// Returns whether there were any.
bool verify_parts(const GlobalFlags& flags, const std::string& path, int threads, VerifyReport& report) {
  check_beside(path, nullptr, {}, threads, flags, report);
  return !report.checks.empty();
}

void write_differences(JsonWriter& json, const std::vector<Difference>& differences) {
  json.key("differences").begin_array();
  for (const Difference& d : differences) {
    json.begin_object().field("tensor", d.tensor).field("file", d.file).field("at", d.at);
    json.field("expected", d.expected).field("found", d.found);
    d.items < 0 ? json.null_field("items") : json.field("items", d.items);
    d.largest ? json.field("largest", *d.largest) : json.null_field("largest");
    json.end_object();
  }
  json.end_array();
}

void write_json(Output& out, const VerifyReport& report, const std::string& path, std::optional<bool> equal) {
  AnswerJson json(out);
  json.begin_answer("verify", report.sound()).field("path", path);
  if (equal) json.field("equal", *equal);
  json.key("checks").begin_array();
  for (const Check& c : report.checks) {
    json.begin_object()
        .field("name", c.name)
        .field("status", status_name(c.status))
        .field("count", c.count)
        .field("unseen", c.unseen);
    c.note.empty() ? json.null_field("note") : json.field("note", c.note);
    json.end_object();
  }
  json.end_array().key("findings");
  write_findings(json, report.findings);
  json.key("unread").begin_array();
  for (const NotRead& u : report.unread) {
    json.begin_object().field("path", u.path);
    u.reason.empty() ? json.null_field("reason") : json.field("reason", u.reason);
    json.end_object();
  }
  json.end_array();
  if (equal) write_differences(json, report.differences);
  json.end_answer();
}

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

std::string_view verdict(const VerifyReport& report, bool equal) {
  if (equal) return "equal";
  auto differs = [](const Finding& f) { return f.code == Code::kUnequal && !f.warning; };
  if (std::ranges::any_of(report.findings, differs)) return "not equal";
  bool compared = std::ranges::any_of(report.checks, [](const Check& c) { return c.name == "against"; });
  return compared ? "no difference found where it could be compared" : "cannot be compared";
}

std::string_view not_done(bool compared) { return compared ? "not compared" : "not read"; }

void write_unread(Output& out, const std::vector<NotRead>& unread, bool compared, bool all) {
  if (unread.empty()) return;
  std::vector<std::string> names;
  for (const NotRead& u : unread)
    names.push_back(compared || u.reason.empty() ? escaped(u.path)
                                                 : cat(escaped(u.path), " (", u.reason, ")"));
  out.line(cat(out.styled(Style::kDim, "-   "), "  ", pad("beside", 9), not_done(compared), ": ",
               listed(names, all ? names.size() : kMostShown)));
}

// What the verdict does not speak of.
std::string but_unread(const std::vector<NotRead>& unread, bool good, bool compared) {
  if (unread.empty()) return "";
  return cat(good ? ", but " : "; ", counted(std::ssize(unread), "file"),
             unread.size() == 1 ? " was " : " were ", not_done(compared));
}

void write_text(Output& out, const VerifyReport& report, const std::string& path, std::optional<bool> equal,
                bool all) {
  i64 failed = 0;
  for (std::size_t c = 0; c < report.checks.size(); c++) {
    const Check& check = report.checks[c];
    failed += check.status == Check::Status::kFail;
    std::string_view unit = check.unit;
    if (check.count == 1) unit.remove_suffix(1);
    std::string looked = check.count == 0 ? "nothing to check" : cat(with_commas(check.count), " ", unit);
    if (check.unseen > 0) looked += cat(", ", with_commas(check.unseen), " ", check.unseen_is);
    if (!check.note.empty()) looked = check.count == 0 ? check.note : cat(looked, "; ", check.note);
    out.line(cat(sign(out, check.status), "  ", pad(check.name, 9), looked));
    std::size_t shown = 0, hidden = 0;
    std::set<std::string> helps;
    for (std::size_t f = 0; f < report.findings.size(); f++) {
      if (report.check_of[f] != c) continue;
      if (!report.findings[f].help.empty()) helps.insert(report.findings[f].help);
      if (all || shown++ < kMostShown) {
        out.line(cat("      ", finding_line(false, report.findings[f])));
      } else {
        hidden++;
      }
    }
    if (hidden > 0) out.line(cat("      and ", hidden, " more; -v shows all"));
    for (const std::string& help : helps) out.line(cat("      help: ", with_flags(help)));
  }
  write_unread(out, report.unread, equal.has_value(), all);
  std::string answer = equal                     ? std::string(verdict(report, *equal))
                       : failed > 0              ? cat(counted(failed, "check"), " failed")
                       : report.findings.empty() ? "sound"
                                                 : "sound, with warnings";
  out.line(
      cat(escaped(path, 4096), ": ", answer, but_unread(report.unread, report.sound(), equal.has_value())));
}

}  // namespace

Exit verify_command(CommandLine& line) {
  std::string path;
  int threads = default_threads();
  line.positional("PATH", path, "a checkpoint: a file or a folder").required();
  line.threads(threads, "threads that read; by default one for each processor");
  line.description(
      "Checks files and sizes, headers, the index, that chunks cover every tensor exactly once, each chunk's "
      "own header, stored CRC-32 sums, NaN and infinities, experts with equal bytes, and other checkpoints "
      "and JSON files in the folder. In a folder that mckpt wrote, also compares every file with its digest "
      "in mckpt_manifest.json. Everything else in the folder is named as not read.");
  line.description("Reads all data and changes nothing. Exit status: 0 sound, 1 problems were found.");
  line.example("mckpt verify ckpt");
  line.example("mckpt verify --json model.safetensors");
  line.example("mckpt verify ckpt --against Qwen3-30B-A3B");
  AgainstFlags against;
  against.declare(line);
  line.parse();

  VerifyReport report;
  std::optional<bool> equal;
  std::function<bool()> parts;
  if (!against.source) parts = [&] { return verify_parts(line.flags(), path, threads, report); };
  std::unique_ptr<Store> store = open_for_report(path, report, parts);
  if (against.source)
    equal = store && verify_against(std::move(store), path, against, threads, line.flags(), report);
  else if (store)
    report = verified(line.flags(), *store, path, threads);
  if (!check_unchanged(store ? store->root() : path, report) && equal) equal = false;
  Output out(line.flags());
  if (out.json()) {
    write_json(out, report, path, equal);
  } else {
    write_text(out, report, path, equal, line.flags().verbose > 0);
  }
  out.flush();
  return report.sound() ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt
