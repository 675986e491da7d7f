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

}  // namespace mckpt::impl
