#include "tools/render/convert_report.h"

#include <cstdio>

#include "io/file/output_files.h"
#include "io/file/output_rules.h"
#include "io/file/staged_file.h"
#include "tools/render/answer_json.h"
#include "tools/render/cast_losses_text.h"
#include "tools/render/progress.h"

namespace mckpt {
namespace {

// What getrusage() tells includes the program that started this one.
i64 peak_rss_bytes() { return status_bytes("VmHWM"); }

void note_speed(const GlobalFlags& flags, i64 bytes, double seconds) {
  char time[32];
  std::snprintf(time, sizeof time, "%.2f s", seconds);
  note(flags, cat("done    ", human_bytes(bytes), " in ", time, " (", human_rate(bytes, seconds), ")"));
}

std::string account_of(std::string_view command, const ConvertReport& r, double seconds) {
  std::string text;
  AnswerJson json(text);
  json.begin_answer(command, true);
  json.field("tensors_in", r.tensors_in).field("tensors_out", r.tensors_out).field("copied", r.copied);
  json.field("fused", r.fused).field("split", r.split).field("tied", r.tied).field("padded", r.padded);
  json.field("changed", r.changed)
      .field("rounded", r.rounded)
      .field("became_infinite", r.infinite)
      .field("became_zero", r.zero)
      .field("dropped", r.dropped)
      .field("dropped_objects", r.dropped_objects)
      .field("invented", r.invented);
  json.key("overflowed").begin_array();
  for (const LostValues::Tensor& t : r.overflowed) json.value(t.name);
  json.end_array();
  json.field("bytes", r.bytes).field("bytes_read", r.bytes_read).field("seconds", seconds);
  json.field("peak_rss", peak_rss_bytes()).field("output", r.output);
  json.end_answer();
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  refuse_other_than_report(path);  // another program may have made it meanwhile
  StagedFile file(path, {.durable = false, .replace = true});
  OutputFiles out(file.folder(), {{file.name(), static_cast<i64>(text.size())}});
  out.write(0, 0, {reinterpret_cast<const u8*>(text.data()), text.size()});
  file.publish(out);
}

}  // namespace

void note_plan(const GlobalFlags& flags, const ConvertReport& r) {
  std::string what;
  auto part = [&](i64 count, const char* word) {
    if (count > 0) what += cat(what.empty() ? "" : ", ", with_commas(count), " ", word);
  };
  part(r.copied, "copied");
  part(r.fused, "fused");
  part(r.split, "split");
  part(r.padded, "padded");
  part(r.changed, "changed");
  part(r.tied, "tied");
  note(flags, cat("plan    ", with_commas(r.tensors_in), " in -> ", with_commas(r.tensors_out),
                  " out: ", what.empty() ? "nothing" : what, "; dropped ", r.dropped,
                  r.dropped_objects > 0 ? cat(" and ", counted(r.dropped_objects, "object")) : "",
                  ", invented ", r.invented));
}

void write_report(const GlobalFlags& flags, std::string_view command, const ConvertReport& r, bool done,
                  const std::optional<std::string>& file) {
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - r.begin).count();
  if (done) note_speed(flags, r.bytes, seconds);
  if (r.rounded > 0)
    note(flags, cat("note    ", counted(r.rounded, "item"),
                    " rounded where norms are stored less one: the way back gives others"));
  if (r.zero > 0)
    note(flags,
         cat("note    ", counted(r.zero, "item"), " became zero: the type of the result has no smaller"));
  if (r.infinite > 0) warn(flags, overflow_text(r.infinite, r.overflowed));
  std::string account = account_of(command, r, seconds);
  try {
    if (file) write_file(*file, account);
  } catch (Error& e) {
    e.prefix(
        done ? cat("the result is published as ", escaped(r.output, 4096), "; only its report is missing: ")
             : "only the report is missing: ");
    throw;
  }
  Output out(flags);
  if (out.json()) {
    out.write(account);
  } else if (done) {
    out.line(r.output);
  }
  out.flush();
}

}  // namespace mckpt
