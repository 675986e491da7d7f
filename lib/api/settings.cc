// Settings are the fields of a struct (options/fields.h), each under its name.
#include "api/settings.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

#include "api/conversion_access.h"
#include "core/base/error.h"

namespace mckpt::impl {
namespace {

[[noreturn]] void refuse(std::string_view name, const char* expected, std::string_view found) {
  throw Error(Code::kUsage, cat("the value of `", name, "` is not allowed"))
      .expected(expected)
      .found(escaped(found));
}

template <typename T>
void parse_number(std::string_view name, std::string_view text, T& to) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (fault == std::errc::result_out_of_range)
    refuse(name, sizeof to == 8 ? "a number of 63 bits" : "a number of 31 bits", text);
  if (fault != std::errc{} || end != text.data() + text.size()) refuse(name, "a whole number", text);
}

class SettingNames final : public FieldVisitor {
 public:
  void field(const Field& field, FieldValue) override {
    if (field.doors != FieldDoors::kProgram) names.emplace_back(field.name);
  }
  std::vector<std::string> names;
};

std::vector<std::string> names_of_the_run() {
  mckpt::RunOptions run;
  SettingNames seen;
  fields(run, seen);
  return seen.names;
}

}  // namespace

Settings::Settings(const char* const* list) {
  for (; list && *list; list++) {
    std::string_view text = *list;
    std::size_t equals = text.find('=');
    if (equals == text.npos)
      throw Error(Code::kUsage, "a setting has no value").expected("name=value").found(escaped(text));
    list_.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
}

const Settings::Setting* Settings::one(std::string_view name) {
  known_.emplace(name);
  const Setting* found = nullptr;
  for (const Setting& s : list_) {
    if (s.name != name) continue;
    if (found)
      throw Error(Code::kUsage, cat("`", name, "` has one value, and several are given"))
          .found(cat(escaped(found->value), " and ", escaped(s.value)));
    found = &s;
    refuse_empty(s);
  }
  return found;
}

// As the program does: an empty text would be taken for a setting that is not given.
void Settings::refuse_empty(const Setting& s) const {
  if (s.value.empty() && !arguments_.contains(s.name))
    throw Error(Code::kUsage, cat("`", s.name, "` needs a value that is not empty")).found("''");
}

bool Settings::has(std::string_view name) {
  known_.emplace(name);
  return given(name);
}

bool Settings::given(std::string_view name) const {
  return std::ranges::any_of(list_, [&](const Setting& s) { return s.name == name; });
}

void Settings::take(std::string_view name, std::string& to) {
  if (const Setting* s = one(name)) to = s->value;
}

void Settings::take(std::string_view name, bool& to) {
  const Setting* s = one(name);
  if (!s) return;
  if (s->value != "0" && s->value != "1") refuse(name, "0 or 1", s->value);
  to = s->value == "1";
}

void Settings::take(std::string_view name, int& to) {
  if (const Setting* s = one(name)) parse_number(name, s->value, to);
}

void Settings::take(std::string_view name, std::int64_t& to) {
  if (const Setting* s = one(name)) parse_number(name, s->value, to);
}

void Settings::take(std::string_view name, std::vector<std::string>& to) {
  known_.emplace(name);
  for (const Setting& s : list_)
    if (s.name == name) refuse_empty(s), to.push_back(s.value);
}

void Settings::take(std::string_view name, TextPairs& to) {
  std::vector<std::string> texts;
  take(name, texts);
  for (const std::string& text : texts) to.push_back(dtype_rule_of(text, name));
}

void Settings::refuse_rest(std::span<const std::string> of_the_run) const {
  std::vector<std::string> here, at_run;
  std::ranges::set_difference(known_, arguments_, std::back_inserter(here));
  for (const std::string& name : of_the_run)
    if (!known_.contains(name)) at_run.push_back(name);
  std::vector<std::string> all = here;
  all.insert(all.end(), at_run.begin(), at_run.end());
  for (const Setting& s : list_) {
    if (known_.contains(s.name)) continue;
    Error e(Code::kUsage, cat("there is no setting `", escaped(s.name), "` here"));
    if (std::ranges::count(at_run, s.name) > 0)
      e.help(cat("`", s.name, "` is a setting of the run: give it when the planned conversion is run"));
    else if (std::string_view near = nearest(s.name, all); !near.empty())
      e.help(cat("did you mean `", near, "`?"));
    std::string names = listed(here, here.size());
    if (!at_run.empty()) names += cat("; of the run: ", listed(at_run, at_run.size()));
    e.note(cat("the settings are ", names));
    throw e;
  }
}

void SettingsReader::field(const Field& field, FieldValue value) {
  if (field.doors == FieldDoors::kProgram) return;
  if (field.argument) settings_.is_argument(field.name);
  std::visit(
      [&](auto& member) {
        if constexpr (requires { settings_.take(field.name, *member); }) settings_.take(field.name, *member);
      },
      value);
  if (!only_with_.empty() && settings_.given(field.name) && !settings_.given(only_with_))
    throw Error(Code::kUsage, cat("`", field.name, "` has a meaning only with `", only_with_, "`"));
}

mckpt::Conversion plan_kind(std::string_view word, Settings& s) {
  const ConversionKind& kind = conversion_of_word(word);
  AnyConversion what = kind.empty();
  int threads = 1;
  s.take("threads", threads);
  SettingsReader reader(s, kind.name);
  fields(what, reader);
  if (source_of(what).empty() || target_of(what).empty())
    throw Error(Code::kUsage, "a conversion needs the settings source and target");
  s.refuse_rest(names_of_the_run());
  return ConversionAccess::plan(what, threads);
}

}  // namespace mckpt::impl
