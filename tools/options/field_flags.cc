// Each kind of value has one way to be declared; texts of help are made when a page is shown.
#include "tools/options/field_flags.h"

#include <algorithm>

#include "core/base/text.h"
#include "options/field_list.h"
#include "tools/options/command_line.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

// "--scheme|--quantize TYPE": the names of a field for CommandLine.
std::string names_of(const Field& field) {
  std::string out;
  for (const std::string& flag : flags_of(field)) out += cat(out.empty() ? "--" : "|--", flag);
  return field.value.empty() ? out : cat(out, " ", field.value);
}

// Declares a field of its kind of value.
struct Declare {
  CommandLine& line;
  const Field& field;
  std::string names, help;

  DeclaredOption operator()(bool* member) const { return line.flag(names, *member, help); }
  DeclaredOption operator()(ClearedBy by) const {
    return line.flag(
        names, [member = by.member] { *member = false; }, help);
  }
  DeclaredOption operator()(int* member) const { return line.threads(*member, help); }
  template <typename Number>
  DeclaredOption number(Number* member) const {
    return field.bytes ? line.bytes(names, *member, help) : line.option(names, *member, help);
  }
  DeclaredOption operator()(std::int64_t* member) const { return number(member); }
  DeclaredOption operator()(std::optional<std::int64_t>* member) const { return number(member); }
  template <typename Text>
  DeclaredOption text(Text* member) const {
    if (field.argument) return line.positional(std::string(field.value), *member, help).required();
    return line.option(names, *member, help);
  }
  DeclaredOption operator()(std::string* member) const { return text(member); }
  DeclaredOption operator()(std::optional<std::string>* member) const { return text(member); }
  DeclaredOption operator()(std::vector<std::string>* member) const {
    return line.option(names, *member, help);
  }
  DeclaredOption operator()(TextPairs* member) const {
    auto take = [member, name = std::string(field.name)](const std::vector<std::string>& texts) {
      for (const std::string& one : texts) member->push_back(dtype_rule_of(one, name));
    };
    return line.taking(names, take, true, help);
  }
  // A number is given once.
  DeclaredOption operator()(const TakeTexts& take) const {
    return line.taking(names, take, field.value != "N", help);
  }
};

std::string with_each(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

FieldFlags& FieldFlags::only(std::vector<std::string_view> names) {
  only_ = std::move(names);
  return *this;
}

FieldFlags& FieldFlags::without(std::vector<std::string_view> names) {
  without_ = std::move(names);
  return *this;
}

bool FieldFlags::is_wanted(const Field& field) const {
  if (field.doors == FieldDoors::kSettings) return false;
  if ((field.doors == FieldDoors::kEveryCommand) != everywhere_) return false;
  if (!only_.empty()) return std::ranges::count(only_, field.name) > 0;
  return std::ranges::count(without_, field.name) == 0;
}

void FieldFlags::heading(std::string_view title) {
  if (only_.empty()) line_.heading(std::string(title));
}

void FieldFlags::only_with(std::string_view field) {
  if (only_.empty()) line_.only_with(cat("--", flag_of_field(field)));
}

void FieldFlags::casts() {
  if (on_casts_) on_casts_();
}

void FieldFlags::field(const Field& field, FieldValue value) {
  if (!is_wanted(field)) return;
  DeclaredOption option = std::visit(Declare{line_, field, names_of(field), std::string(field.help)}, value);
  if (!field.words.empty())
    field.only ? option.choices(words_of(field.words)) : option.words(words_of(field.words));
  if (field.common) option.common();
}

void FieldsOfEveryCommand::field(const Field& field, FieldValue value) {
  if (field.name == "follow_links") *std::get<bool*>(value) = line_.files().follow_links;
  if (field.name == "model_files") *std::get<std::string*>(value) = line_.files().model_files;
}

std::string help_with_flags(std::string_view help) {
  return with_flags(with_each(with_each(std::string(help), "`source`", "SRC"), "`target`", "DST"));
}

}  // namespace mckpt::impl
