// The fields of a struct (lib/options) as options of a command:
//
//   ToHf what;
//   FieldFlags flags(line, "fsdp-to-hf");
//   fields(what, flags);          declares --dtype TYPE, --max-shard-size SIZE, ... and the arguments SRC and DST
//   line.parse();                 fills `what`
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "options/field.h"

namespace mckpt::impl {

class CommandLine;

// pre: the line, and the struct whose fields are shown, live until the line is parsed.
class FieldFlags final : public FieldVisitor {
 public:
  explicit FieldFlags(CommandLine& line, std::string_view kind = "") : FieldVisitor(kind), line_(line) {}

  // Declares these fields alone, or all but these; a field that is shown again is declared again.
  FieldFlags& only(std::vector<std::string_view> names);
  FieldFlags& without(std::vector<std::string_view> names);
  // Declares the options of every command instead of others.
  void every_command() { everywhere_ = true; }
  // Called where values are cast.
  void on_casts(std::function<void()> fn) { on_casts_ = std::move(fn); }

  void heading(std::string_view title) override;
  void only_with(std::string_view field) override;
  void casts() override;
  void field(const Field& field, FieldValue value) override;

 private:
  bool is_wanted(const Field& field) const;

  CommandLine& line_;
  std::vector<std::string_view> only_, without_;
  bool everywhere_ = false;
  std::function<void()> on_casts_;
};

// Sets the fields of a struct that the options of every command give. pre: the line is parsed.
class FieldsOfEveryCommand final : public FieldVisitor {
 public:
  explicit FieldsOfEveryCommand(const CommandLine& line) : line_(line) {}
  void field(const Field& field, FieldValue value) override;

 private:
  const CommandLine& line_;
};

// The help of a field with flags in place of names of fields: "the tensors of --assets", and SRC for
// `source`.
std::string help_with_flags(std::string_view help);

}  // namespace mckpt::impl
