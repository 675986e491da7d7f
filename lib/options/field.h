// A field of a plain struct of options, as data: its name, the kind of its value, and a sentence of help.
// Each struct of lib/options/mckpt has one function that shows its fields to a visitor (options/fields.h):
//
//   fields(ToHf& o, FieldVisitor& v)      v.field({.name = "dtype", .words = "auto keep bf16", .help = ...}, o.dtype)
//
//   visitor                                    makes of it
//   command line (tools/options/field_flags)   --dtype TYPE, help, completions, man pages
//   settings (lib/api/settings)                dtype=bf16, of C and Python
//   list of fields (options/field_list)        JSON, of which Python's types and the tables of docs are made
//
// Help names other fields in backquotes, and no flags: "the tensors of `assets`". The command line shows
// their flags.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Where a field is given. kEveryCommand: the program has it as an option of every command.
enum class FieldDoors : u8 { kBoth, kSettings, kProgram, kEveryCommand };

struct Field {
  std::string_view name;
  std::string_view value{};  // the help's name of its value: "DIR"; of an argument: "SRC"
  // Names of the flag, where it is not the name with hyphens: "scheme quantize to". The first one is shown.
  std::string_view flags{};
  std::string_view words{};  // values that are known: "auto keep bf16"
  bool only = false;         // no other values are taken
  bool common = false;       // most people need it
  bool argument = false;     // of the command line: no option, and required
  bool bytes = false;        // a number of bytes
  FieldDoors doors = FieldDoors::kBoth;
  std::string_view help{};
};

using TextPairs = std::vector<std::pair<std::string, std::string>>;  // {glob, type}
// Takes all texts that are given for a field that is not a member of its struct.
using TakeTexts = std::function<void(const std::vector<std::string>&)>;

// A flag that clears a member: no_sync clears sync.
struct ClearedBy {
  bool* member;
};

// The member. An optional that stays empty was not given.
using FieldValue =
    std::variant<bool*, int*, std::int64_t*, std::optional<std::int64_t>*, std::string*,
                 std::optional<std::string>*, std::vector<std::string>*, TextPairs*, ClearedBy, TakeTexts>;

class FieldVisitor {
 public:
  // `kind`: the conversion (options/kinds.h), or "".
  explicit FieldVisitor(std::string_view kind = "") : kind_(kind) {}
  virtual ~FieldVisitor() = default;

  std::string_view kind() const { return kind_; }
  virtual void heading(std::string_view) {}  // of the fields that follow
  // The fields that follow have no meaning where this one is not given.
  virtual void only_with(std::string_view /*field*/) {}
  // Values are cast here: a run may be told that finite values may become infinite.
  virtual void casts() {}
  virtual void field(const Field& field, FieldValue value) = 0;

  template <typename T>
  void operator()(const Field& what, T& member) {
    field(what, FieldValue(&member));
  }

 private:
  std::string_view kind_;
};

// Shows fields to another visitor as settings alone. Flags of every command stay flags.
class InSettingsAlone final : public FieldVisitor {
 public:
  explicit InSettingsAlone(FieldVisitor& to) : FieldVisitor(to.kind()), to_(to) {}
  void field(const Field& field, FieldValue value) override {
    if (field.doors == FieldDoors::kProgram) return;
    Field alone = field;
    if (alone.doors != FieldDoors::kEveryCommand) alone.doors = FieldDoors::kSettings;
    to_.field(alone, std::move(value));
  }

 private:
  FieldVisitor& to_;
};

// "auto keep bf16" -> {"auto", "keep", "bf16"}
std::vector<std::string> words_of(std::string_view words);
// The flags of a field without their hyphens, the shown one first: "source-tp".
std::vector<std::string> flags_of(const Field& field);
// The kind of path that the help's name of a value stands for: "FILE", "DIR". By it an open checkpoint knows
// the paths among its options, and the command line what to complete.
enum class PathKind : u8 { kNone, kAny, kFolder };
PathKind path_kind(std::string_view value);
// Splits "GLOB=TYPE". The glob may contain '=' itself, so the last one counts. Throws kUsage without one.
std::pair<std::string, std::string> dtype_rule_of(std::string_view text, std::string_view setting);
// The parts of "a,b" and of several such texts, in one list.
std::vector<std::string> parts_of(const std::vector<std::string>& texts);

}  // namespace mckpt::impl
