// The JSON answer of a command: one object that begins with {"schema": "mckpt.<command>/1", "ok": ...} and
// ends with a newline. An answer for stdout is sent on while it is written, so its length does not matter.
#pragma once

#include "core/base/text.h"
#include "io/json/json_writer.h"
#include "tools/render/output.h"

namespace mckpt::impl {

// A JsonWriter of one answer. Written to an Output, it flushes from time to time, so an error after the first
// flush leaves a part of an answer on stdout; commands therefore find out what can fail before they begin.
class AnswerJson : public JsonWriter {
 public:
  explicit AnswerJson(Output& out) : AnswerJson(out.buffer(), [&out] { out.flush(); }) {}
  explicit AnswerJson(std::string& text, std::function<void()> relieve = {})
      : JsonWriter(text, std::move(relieve)), text_(text) {}

  JsonWriter& begin_answer(std::string_view command, bool ok) {
    begin_object();
    field("schema", cat("mckpt.", command, "/1"));
    return field("ok", ok);
  }
  // pre: everything inside the object is closed.
  void end_answer() {
    end_object();
    text_ += '\n';
  }

 private:
  std::string& text_;
};

// The answer of a command about one checkpoint, or about several: the fields of one are at the top, several
// are in a list.
//
//   {"schema": "mckpt.ls/1", "ok": true, "path": "a", ...}
//   {"schema": "mckpt.ls/1", "ok": true, "checkpoints": [{"ok": true, "path": "a", ...}, {...}]}
class CheckpointAnswers {
 public:
  CheckpointAnswers(AnswerJson& json, std::string_view command, bool all_ok, bool several)
      : json_(json), command_(command), several_(several) {
    if (several_) json_.begin_answer(command_, all_ok).key("checkpoints").begin_array();
  }
  JsonWriter& begin(bool ok, const std::string& path) {
    several_ ? json_.begin_object().field("ok", ok) : json_.begin_answer(command_, ok);
    return json_.field("path", path);
  }
  void end() { several_ ? static_cast<void>(json_.end_object()) : json_.end_answer(); }
  void end_all() {
    if (several_) json_.end_array(), json_.end_answer();
  }

 private:
  AnswerJson& json_;
  std::string_view command_;
  bool several_;
};

}  // namespace mckpt::impl
