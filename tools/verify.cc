// mckpt verify: whether a checkpoint is whole and sound by itself.
#include "io/verify.h"

#include <algorithm>
#include <set>

#include "io/parallel.h"
#include "tools/commands.h"
#include "tools/findings.h"
#include "tools/folder_manifest.h"
#include "tools/progress.h"
#include "tools/text_table.h"
#include "tools/verify_against.h"
#include "tools/verify_assets.h"

namespace mckpt {
namespace {

constexpr std::size_t kMostShown = 10;

// What cannot be judged at all stays an error; what is there and broken is an answer.
bool is_an_answer(Code code) {
  return code != Code::kNotFound && code != Code::kReadFailed && code != Code::kUnknownFormat &&
         code != Code::kModuleMissing;
}

// Null where the checkpoint cannot be opened and that is the answer.
std::unique_ptr<Store> open_for_report(const std::string& path, VerifyReport& report) {
  try {
    return open_store(path);
  } catch (const Error& e) {
    if (code_info(e.code()).exit != Exit::kInput || !is_an_answer(e.code())) throw;
    report = unreadable_report(e);
    return nullptr;
  }
}

VerifyReport verified(const GlobalFlags& flags, const Store& store, int threads) {
  Progress progress(flags, "verify", verify_bytes(store));
  VerifyReport report = verify_store(store, threads, [&](i64 bytes) { progress.add(bytes); });
  check_assets(store, report);
  check_manifest(store, threads, report);
  return report;
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
  JsonWriter json(out);
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
    for (const std::string& help : helps) out.line(cat("      help: ", help));
  }
  std::string name = escaped(path, 4096);
  if (equal) return out.line(cat(name, ": ", verdict(report, *equal)));
  if (failed > 0) {
    out.line(cat(name, ": ", counted(failed, "check"), " failed"));
  } else {
    out.line(cat(name, report.findings.empty() ? ": sound" : ": sound, with warnings"));
  }
}

}  // namespace

Exit verify_command(CommandLine& line) {
  std::string path;
  int threads = default_threads();
  line.positional("PATH", path, "a checkpoint: a file or a folder").required();
  line.threads(threads, "threads that read, by default one a processor");
  line.description(
      "Checks files and sizes, headers, the index, that chunks cover every tensor exactly once, each chunk's "
      "own");
  line.description(
      "header, stored CRC-32 sums, NaN and infinities, experts that are byte-equal, JSON files beside them, "
      "and "
      "in");
  line.description("folders that mckpt wrote every file against the digests of mckpt_manifest.json.");
  line.description("Reads all data; changes nothing. Exit status 0 when it is sound, 1 with findings.");
  line.example("mckpt verify ckpt");
  line.example("mckpt verify --json model.safetensors");
  line.example("mckpt verify ckpt --against Qwen3-30B-A3B");
  AgainstFlags against;
  against.declare(line);
  line.parse();

  VerifyReport report;
  std::optional<bool> equal;
  std::unique_ptr<Store> store = open_for_report(path, report);
  if (against.source)
    equal = store && verify_against(std::move(store), path, against, threads, line.flags(), report);
  else if (store)
    report = verified(line.flags(), *store, threads);
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
