// Writes an error as the JSON answer of a command. The texts get the flags of settings (setting_names.h);
// names of files and tensors are printed as they are. Out of memory is a constant text, written with one
// system call.
#include "tools/render/json_error.h"

#include <unistd.h>

#include "core/base/error.h"
#include "tools/render/answer_json.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

// False if a part of an answer is on stdout already: two objects in one answer would be no JSON.
bool wanted(const GlobalFlags& flags) { return (flags.json || flags.jsonl) && !Output::has_written(); }

}  // namespace

// A fact that the error does not have is null, so every error has the same fields.
void write_error_fields(JsonWriter& json, const Error& e) {
  auto text = [&](std::string_view name, const std::string& value) {
    value.empty() ? json.null_field(name) : json.field(name, with_flags(value));
  };
  json.field("code", code_name(e.code())).field("message", with_flags(e.message()));
  auto name = [&](std::string_view field, const std::string& value) {
    value.empty() ? json.null_field(field) : json.field(field, value);
  };
  name("file", e.file());
  name("tensor", e.tensor());
  e.offset() < 0 ? json.null_field("offset") : json.field("offset", e.offset());
  text("expected", e.expected());
  text("found", e.found());
  json.key("notes").begin_array();
  for (const std::string& note : e.notes()) json.value(with_flags(note));
  json.end_array();
  text("help", e.help());
}

void write_json_error(const GlobalFlags& flags, const Error& error) noexcept {
  if (!wanted(flags)) return;
  try {
    Output out(flags);
    AnswerJson json(out);
    json.begin_answer("error", false).key("error").begin_object();
    write_error_fields(json, error);
    json.end_object();
    json.end_answer();
    out.flush();
  } catch (...) {
  }
}

void write_json_out_of_memory(const GlobalFlags& flags) noexcept {
  constexpr std::string_view kText =
      R"({"schema": "mckpt.error/1", "ok": false, "error": {"code": "MC9902", "message": "out of memory", )"
      R"("file": null, "tensor": null, "offset": null, "expected": null, "found": null, "notes": [], "help": null}})"
      "\n";
  if (wanted(flags)) [[maybe_unused]]
    auto n = ::write(STDOUT_FILENO, kText.data(), kText.size());
}

}  // namespace mckpt::impl
