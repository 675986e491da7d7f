// Words of a card. Each form begins so that OutputRules knows it as a report of mckpt, which may be replaced.
#include "io/card/card_text.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "io/card/card_json.h"
#include "io/card/inert.h"
#include "io/file/place.h"
#include "io/output/output_files.h"
#include "io/output/output_rules.h"
#include "io/output/staged_file.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostTensors = 500;  // that are listed for people
constexpr std::string_view kComment = "<!-- mckpt.card/1 -->", kHash = "# mckpt.card/1";

// A line of `sha256sum`: a backslash in front says that the name is escaped.
std::string sum_line(const CardFile& f) {
  std::string name;
  for (char c : f.name)
    name += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  return cat(name == f.name ? "" : "\\", f.sha256, "  ", name, "\n");
}

std::string line(std::string_view text) { return inert(text, MarkdownPlace::kLine); }

std::string cell(std::string_view text) { return inert(text, MarkdownPlace::kTableCell); }

std::string row(std::initializer_list<std::string_view> cells) {
  std::string out = "|";
  for (std::string_view c : cells) out += cat(" ", cell(c), " |");
  return out + "\n";
}

std::string verdict(const Card& card) {
  if (card.comparison) {
    auto differs = [](const Finding& f) { return f.code == Code::kUnequal && !f.warning; };
    bool unequal = std::ranges::any_of(card.findings, differs);
    auto lost = std::ranges::find(card.checks, "overflow", &Check::name);
    return cat(
        card.comparison->equal ? "equal to "
        : unequal              ? "not equal to "
                               : "not proven equal to ",
        card.comparison->source, ", ", counted(card.comparison->tensors, "tensor"), " compared",
        card.comparison->rounded > 0 ? cat(", ", card.comparison->rounded, " after a cast that rounds") : "",
        lost == card.checks.end()
            ? ""
            : cat(", but ", counted(lost->count, "tensor"), lost->count == 1 ? " has" : " have",
                  " values that a cast made infinite"));
  }
  if (card.checks.empty()) return "not checked: the digests alone were taken";
  i64 failed = std::ranges::count(card.checks, Check::Status::kFail, &Check::status);
  if (failed > 0) return cat(counted(failed, "check"), " failed");
  return card.findings.empty() ? "sound" : "sound, with warnings";
}

std::string overview(const Card& card) {
  std::string out = row({"", ""}) + "|---|---|\n";
  out += row({"verdict", verdict(card)});
  if (!card.format.empty()) out += row({"format", card.format});
  out += row({"files", cat(with_commas(std::ssize(card.files)), ", ", human_bytes(card.bytes()))});
  out += row({"tensors", with_commas(std::ssize(card.tensors))});
  for (const std::string& source : card.made_of) out += row({"made of", source});
  if (!card.plan.empty()) out += row({"plan", card.plan});
  out += row({"SHA-256 of all files", card.root()});
  if (!card.command.empty()) out += row({"command", card.command});
  return out + row({"mckpt", card.version});
}

std::string checks(const Card& card) {
  std::string out;
  for (const Check& c : card.checks) {
    if (c.status == Check::Status::kNone && c.note.empty()) continue;
    out += row({c.name, std::string(status_name(c.status)), looked_at(c), c.note});
  }
  if (!out.empty()) out = "\n## Checks\n\n| check | result | looked at | note |\n|---|---|---|---|\n" + out;
  if (!card.findings.empty()) out += "\n";
  for (const Finding& f : card.findings) {
    out += cat("- ", f.warning ? "warning " : "problem ", code_name(f.code), ": ");
    if (!f.file.empty()) out += cat(line(f.file), ": ");
    if (!f.tensor.empty()) out += cat("tensor ", line(f.tensor), ": ");
    out += cat(line(f.message), "\n");
  }
  return out;
}

std::string not_read(const Card& card) {
  std::string out;
  for (const NotRead& u : card.unread)
    out += cat("- ", line(u.path), u.why().empty() ? "" : cat(" (", line(u.why()), ")"),
               ": its digest alone was taken, if it is listed below\n");
  for (const std::string& name : card.ignored) out += cat("- ", line(name), ": not on the card\n");
  return out.empty() ? out : "\n## Not looked at\n\n" + out;
}

std::string files(const Card& card) {
  std::string out = "\n## Files\n\nIn the folder, `sha256sum -c` checks them by this page.\n\n```text\n";
  for (const CardFile& f : card.files) out += sum_line(f);
  return out + "```\n";
}

std::string tensors(const Card& card) {
  if (card.tensors.empty()) return "";
  std::string out =
      "\n## Tensors\n\nSHA-256 of the values, contiguous and little-endian.\n\n"
      "| tensor | type | shape | SHA-256 |\n|---|---|---|---|\n";
  for (const CardTensor& t : card.tensors) {
    if (&t - card.tensors.data() == kMostTensors) {
      out +=
          cat("\n", with_commas(std::ssize(card.tensors) - kMostTensors), " more are in the card as JSON.\n");
      break;
    }
    std::string shape;  // brackets of mckpt itself: no definition of a link can be in the page
    for (i64 d : t.shape) shape += cat(shape.empty() ? "" : ", ", d);
    const std::string name = t.checkpoint.empty() ? t.name : cat(t.checkpoint, ": ", t.name);
    out += cat("| ", cell(name), " | ", cell(t.dtype), " | [", shape, "] | ",
               t.sha256.empty() ? "could not be read" : t.sha256, " |\n");
  }
  return out;
}

enum class Form : u8 { kJson, kMarkdown, kSums };

Form form_of(const std::string& path) {
  std::string_view name = std::string_view(path).substr(path.find_last_of('/') + 1);
  if (name.ends_with(".json")) return Form::kJson;
  if (name.ends_with(".md")) return Form::kMarkdown;
  if (name.ends_with(".sha256") || name == "SHA256SUMS") return Form::kSums;
  throw Error(Code::kUsage, "the name of a card says its form")
      .expected("a name that ends with .json, .md or .sha256, or SHA256SUMS")
      .found(escaped(path));
}

}  // namespace

std::string card_markdown(const Card& card) {
  return cat(kComment, "\n# ", line(card.name), "\n\n", overview(card), checks(card), not_read(card),
             files(card), tensors(card));
}

std::string card_sums(const Card& card) {
  std::string out = cat(kHash, " of ", escaped(card.name), "\n");
  for (const CardFile& f : card.files) out += sum_line(f);
  return out;
}

std::string card_in_form_of(const std::string& path, const Card& card) {
  switch (form_of(path)) {
    case Form::kJson:
      return card_json(card);
    case Form::kMarkdown:
      return card_markdown(card);
    case Form::kSums:
      return card_sums(card);
  }
  return "";
}

void check_card_name(const std::string& path) { form_of(path); }

namespace {

void check_card_place(const std::string& path) {
  form_of(path);
  refuse_other_than_report(path);
  std::error_code failed;
  if (const std::string folder = parent_folder(path); !std::filesystem::is_directory(folder, failed))
    throw Error(Code::kNoRoom, "the folder of the card does not exist")
        .file(path)
        .help(cat("make the folder ", escaped(folder, 4096), " first"));
  StagedFile::check(path, {.replace = true}, 0);
}

}  // namespace

void check_card_places(const std::vector<std::string>& paths) {
  refuse_shared_places(paths);
  for (const std::string& path : paths) check_card_place(path);
}

void write_card(const std::string& path, const Card& card, bool durable) {
  std::string text = card_in_form_of(path, card);
  StagedFile staged(path, {.durable = durable, .replace = true});
  OutputFiles out(staged.folder(), {{staged.name(), std::ssize(text)}}, OutputFiles::Begin::kReplace);
  out.write(0, 0, std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  staged.publish(out);
}

}  // namespace mckpt::impl
