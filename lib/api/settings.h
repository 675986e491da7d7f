// Settings: the options of the interface's structs as texts "name=value", as they come from another language.
// read() takes the settings that are fields of a struct:
//
//   Settings settings({"source=hf", "target=ckpt", "tp=2"});
//   ToFsdp what;
//   read(settings, what);
//   settings.refuse_rest();       throws for a name that no read() took
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mckpt/conversion.h"
#include "options/fields.h"

namespace mckpt::impl {

// A list of settings. Only a list may be given several times. Every take() throws kUsage for a value that
// does not have the type of the field, and for an empty one unless the setting is an argument.
class Settings {
 public:
  // `list` ends with a null pointer; null: no settings. Throws kUsage for a text without '='.
  explicit Settings(const char* const* list);

  void take(std::string_view name, std::string& to);
  void take(std::string_view name, bool& to);
  void take(std::string_view name, int& to);
  void take(std::string_view name, std::int64_t& to);
  void take(std::string_view name, std::vector<std::string>& to);  // all of the name
  void take(std::string_view name, TextPairs& to);                 // texts GLOB=TYPE
  template <typename T>
  void take(std::string_view name, std::optional<T>& to) {
    T value{};
    if (has(name)) take(name, value), to = std::move(value);
  }

  bool given(std::string_view name) const;

  // An argument of its own in most languages, such as `source`: lists of settings leave its name out.
  void is_argument(std::string_view name) { arguments_.emplace(name); }

  // Throws kUsage for the first setting that was not taken, with the names of all that could have been.
  // `of_the_run`: names that the run takes, and not the plan.
  void refuse_rest(std::span<const std::string> of_the_run = {}) const;

 private:
  struct Setting {
    std::string name, value;
  };
  bool has(std::string_view name);
  // The setting of that name; null if there is none. Throws kUsage if there are several.
  const Setting* one(std::string_view name);
  void refuse_empty(const Setting& s) const;

  std::vector<Setting> list_;
  std::set<std::string, std::less<>> known_, arguments_;  // names that were asked for
};

// Takes the settings that are fields of a struct.
class SettingsReader final : public FieldVisitor {
 public:
  explicit SettingsReader(Settings& settings, std::string_view kind = "")
      : FieldVisitor(kind), settings_(settings) {}
  void only_with(std::string_view field) override { only_with_ = field; }
  // Throws kUsage for a field that is given without the one that it has a meaning with.
  void field(const Field& field, FieldValue value) override;

 private:
  Settings& settings_;
  std::string_view only_with_{};
};

template <typename What>
void read(Settings& from, What& to) {
  SettingsReader reader(from);
  fields(to, reader);
}

// The conversion of that kind (options/kinds.h), planned.
mckpt::Conversion plan_kind(std::string_view word, Settings& settings);

}  // namespace mckpt::impl
