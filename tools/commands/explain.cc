// mckpt explain [CODE]: what an error code means, from the table in core/base/error_codes.inc; without a
// code, all titles.
//
//   $ mckpt explain MC0102
//   MC0102: a shape is not valid
//
//   A dimension is negative, or there are more dimensions than a tensor can have
//   (64).
//
//   Exit status 3.
//
//   $ mckpt explain MC0102 --json
//   {"schema": "mckpt.explain/1", "ok": true, "code": "MC0102", "exit": 3, "title": "a shape is not valid", ...}
//
// Explanations of the library name settings; the program shows them as flags (tools/render/setting_names.h).
#include <algorithm>
#include <cctype>

#include "convert/open/damage.h"
#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "page/data/fused_picture.h"
#include "tools/commands/commands.h"
#include "tools/help/help_text.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

// "MC0102", "mc0102", "0102" and "102" all mean the same code. Throws kUnknownCode with the codes that begin
// like the text, or the nearest one.
const CodeInfo& find_code(std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 2 && std::toupper(digits[0]) == 'M' && std::toupper(digits[1]) == 'C')
    digits.remove_prefix(2);
  for (const CodeInfo& info : all_codes()) {
    std::string name = code_name(info.code);
    if (digits == std::string_view(name).substr(2) || digits == cat(static_cast<int>(info.code))) return info;
  }
  std::vector<std::string> names, begun;
  for (const CodeInfo& info : all_codes()) {
    names.push_back(code_name(info.code));
    if (!digits.empty() && names.back().compare(2, digits.size(), digits) == 0) begun.push_back(names.back());
  }
  Error e(Code::kUnknownCode, cat("there is no error code '", escaped(text), "'"));
  if (!begun.empty())
    e.note(cat("these codes begin so: ", listed(begun, 12)));
  else if (std::string_view near = nearest(text, names); !near.empty())
    e.note(cat("the nearest code is ", near));
  else
    e.note(cat("codes are MC and four digits, from ", names.front(), " to ", names.back()));
  throw e.help("mckpt explain   lists all codes");
}

// Lines that begin with "- " are cases, with their further lines indented.
std::string explanation_text(const std::string& text) {
  std::string_view explanation = text;
  std::string out;
  for (std::size_t at = 0; at <= explanation.size();) {
    std::size_t end = std::min(explanation.find('\n', at), explanation.size());
    std::string_view line = explanation.substr(at, end - at);
    bool is_case = line.starts_with("- ");
    if (is_case && out.find("\n- ") == out.npos) out += "\nCases:\n";
    out += cat(wrapped(line, help_width(), 0, is_case ? 2 : 0), "\n");
    at = end + 1;
  }
  return out;
}

// The explanation, and for damage that can be accepted the option that does.
std::string explanation_of(const CodeInfo& info) {
  std::string text(info.explanation);
  std::span<const Code> acceptable = acceptable_damage();
  if (std::ranges::find(acceptable, info.code) != acceptable.end())
    text += cat(" `accept` ", code_name(info.code),
                " uses the checkpoint as it is, in a conversion or comparison.");
  return with_flags(text);
}

// A picture for codes that one explains: what a plain state of an optimizer loses, of the example in
// docs/formats/fsdp_buffers.md.
std::string picture_of(Code code) {
  if (code != Code::kCounterpart) return "";
  const Shape shapes[] = {Shape{10, 4}, Shape{10}};
  constexpr i64 kRanks = 4;
  const FlatBuffer buffer = pack(shapes, {.ranks = kRanks});
  FusedPicture picture{
      .title = "linear_fc1.weight [10, 4] of a gated layer on 4 ranks",
      .about = "W and V are its halves; Megatron-FSDP cuts the buffer in which it is, with its bias"};
  const i64 half = shapes[0].items() / 2;
  picture.cut.parts = {{"_w", {0, half}}, {"_v", {half, 2 * half}}};
  for (i64 rank = 0; rank < kRanks; rank++) picture.cut.shares.push_back({rank, item_range(buffer, 0, rank)});
  return fused_text(picture, 96);
}

void write_code(JsonWriter& json, const CodeInfo& info) {
  json.field("code", code_name(info.code)).field("exit", static_cast<int>(info.exit));
  json.field("title", info.title).field("explanation", explanation_of(info));
  const std::string picture = picture_of(info.code);
  picture.empty() ? json.null_field("picture") : json.field("picture", picture);
}

}  // namespace

Exit explain_command(CommandLine& line) {
  std::optional<std::string> code;
  std::vector<std::string> names;
  for (const CodeInfo& info : all_codes()) names.push_back(code_name(info.code));
  line.positional("CODE", code, "an error code such as MC0102; without CODE, all codes are listed")
      .words(std::move(names));
  line.example("mckpt explain MC0102");
  line.example("mckpt explain");
  line.example("mckpt explain MC1315 --json");
  line.parse();
  Output out(line.flags());
  AnswerJson json(out);
  if (code) {
    const CodeInfo& info = find_code(*code);
    if (out.json()) {
      json.begin_answer("explain", true);
      write_code(json, info);
      json.end_answer();
    } else {
      out.line(cat(out.styled(Style::kBold, cat(code_name(info.code), ": ", info.title)), "\n\n",
                   explanation_text(explanation_of(info)), "\nExit status ", static_cast<int>(info.exit),
                   "."));
      if (const std::string picture = picture_of(info.code); !picture.empty()) out.write(cat("\n", picture));
    }
  } else if (out.json()) {
    json.begin_answer("explain", true).key("codes").begin_array();
    for (const CodeInfo& info : all_codes()) {
      json.begin_object();
      write_code(json, info);
      json.end_object();
    }
    json.end_array();
    json.end_answer();
  } else {
    for (const CodeInfo& info : all_codes()) out.line(cat(code_name(info.code), "  ", info.title));
  }
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
