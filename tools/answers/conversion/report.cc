// The account of a conversion: the plan on stderr, then the result's path on stdout, or all numbers as JSON.
// The answer is the same for every mode; what a mode cannot have is 0.
//
//   plan    45 in -> 41 out: 39 copied, 2 fused; dropped 0, invented 0       note_plan(), before any write
//   done    72.1 KiB in 0.01 s (7.04 MiB/s)                                  write_report(), on stderr
//   ckpt/release                                                             write_report(), on stdout
//
// With --report the JSON is written into a file as well, there with every tensor (account_rows.h). A report
// that cannot be written is an error although the result is published; the message says so.
#include "tools/answers/conversion/report.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>

#include "convert/asked/results.h"
#include "convert/plan/account_text.h"
#include "convert/plan/conversion.h"
#include "convert/run/result_card.h"
#include "convert/run/run.h"
#include "core/base/error.h"
#include "io/copy/lost_values.h"
#include "io/output/output_files.h"
#include "io/output/output_rules.h"
#include "io/output/staged_file.h"
#include "options/results.h"
#include "tools/answers/conversion/account_rows.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"

namespace mckpt::impl {
namespace {

// The figures of getrusage() include the program that started this one.
i64 peak_rss_bytes() { return status_bytes("VmHWM"); }

// The time covers the whole conversion, from planning to publishing.
void note_speed(const GlobalFlags& flags, i64 bytes, double seconds) {
  char time[32];
  std::snprintf(time, sizeof time, "%.2f s", seconds);
  note(flags, cat("done    ", human_bytes(bytes), " in ", time, " (", human_rate(bytes, seconds), ")"));
}

// "3 finite values became infinite in 2 tensors: a (2), b (1)"
std::string overflow_text(const RunResult& result) {
  constexpr std::size_t kMostNames = 5;
  std::span<const LostValues::Tensor> tensors = result.overflowed;
  std::string names;
  for (const LostValues::Tensor& t : tensors.first(std::min(kMostNames, tensors.size())))
    names += cat(names.empty() ? "" : ", ", escaped(t.name), " (", with_commas(t.infinite), ")");
  if (tensors.size() > kMostNames) names += cat(" and ", tensors.size() - kMostNames, " more");
  return cat(counted(result.became_infinite, "finite value"), " became infinite in ",
             counted(std::ssize(tensors), "tensor"), ": ", names);
}

// The fields of the JSON beside the counts of the proof.
struct Outcome {
  const RunResult& result;
  double seconds;
  i64 peak_rss;
  bool dry_run;
};

const char* resumed_word(RunResult::Resumed resumed) {
  using Resumed = RunResult::Resumed;
  return resumed == Resumed::kUnfinished  ? "unfinished"
         : resumed == Resumed::kPublished ? "published"
                                          : "nothing";
}

void write_grid(JsonWriter& json, const Grid& g) {
  json.begin_object()
      .field("tp", g.tp)
      .field("cp", g.cp)
      .field("ep", g.ep)
      .field("etp", g.etp)
      .field("pp", g.pp);
  json.field("dp", g.dp).field("hsdp", g.hsdp).field("ranks", g.world()).end_object();
}

// The fields of docs/json.md, also for a dry run, whose counts of casts and bytes read are 0.
void write_totals(JsonWriter& json, const Conversion& c, const Outcome& o) {
  const mckpt::RunReport run = run_report_of(c, o.result);
  const mckpt::Account account = account_of(c);
  auto write = [&](const char* name, const auto& value, const char*) { json.field(name, value); };
  json.field("dry_run", o.dry_run).field("resumed", resumed_word(o.result.resumed));
  made_fields(account, write);
  cast_fields(run, write);
  lost_fields(account, write);
  json.key("overflowed").begin_array();
  for (const std::string& name : run.overflowed) json.value(name);
  json.end_array();
  std::vector<Finding> odd;
  for (const Oddities& side : c.oddities) odd.insert(odd.end(), side.findings.begin(), side.findings.end());
  write_findings(json.key("findings"), odd);
  json.field("bytes", run.bytes).field("bytes_read", run.bytes_read).field("seconds", o.seconds);
  json.field("peak_rss", o.peak_rss).field("format", c.format).field("output", c.path);
  if (c.grid) write_grid(json.key("grid"), *c.grid);
}

// Sends the report on in pieces: the totals, and every tensor if the conversion has them.
void each_piece(std::string_view command, const Conversion& c, const Outcome& o,
                const std::function<void(std::string_view)>& take) {
  std::string text;
  auto send = [&] {
    take(text);
    text.clear();
  };
  AnswerJson json(text, send);
  json.begin_answer(command, true);
  write_totals(json, c, o);
  if (c.tensors) write_account_rows(json, c);
  json.end_answer();
  send();
}

// Publishes the report by a rename, so that it is whole or absent; it need not survive a power failure. It is
// written twice, the first time to know its size, and never in memory as a whole.
void write_file(const std::string& path, std::string_view command, const Conversion& c, const Outcome& o) {
  refuse_other_than_report(path);  // another program may have made it meanwhile
  i64 bytes = 0, at = 0;
  each_piece(command, c, o, [&](std::string_view text) { bytes += std::ssize(text); });
  StagedFile file(path, {.durable = false, .replace = true});
  OutputFiles out(file.folder(), {{file.name(), bytes}});
  each_piece(command, c, o, [&](std::string_view text) {
    out.write(0, at, {reinterpret_cast<const u8*>(text.data()), text.size()});
    at += std::ssize(text);
  });
  file.publish(out);
}

}  // namespace

void note_plan(const GlobalFlags& flags, const Conversion& c) {
  note(flags, cat("plan    ", account_text(c)));
  if (!c.format.empty()) note(flags, cat("writes  ", result_text(c)));
}

void write_report(const GlobalFlags& flags, std::string_view command, const Conversion& c,
                  const RunResult* done, double seconds, const std::optional<std::string>& file) {
  RunResult result = done ? *done : RunResult{};
  if (done) note_speed(flags, c.bytes, seconds);
  if (result.counts.rounded > 0)
    note(flags, cat("note    ", counted(result.counts.rounded, "item"),
                    " rounded, as norms are stored less one: the conversion back gives other values"));
  if (result.became_zero > 0)
    note(flags, cat("note    ", counted(result.became_zero, "item"),
                    " became zero: the data type of the result has no smaller values"));
  if (result.became_infinite > 0) warn(flags, overflow_text(result));
  Outcome outcome{result, seconds, peak_rss_bytes(), done == nullptr};
  try {
    if (file) write_file(*file, command, c, outcome);
  } catch (Error& e) {
    e.prefix(done ? published_without("report", c) : "only the report is missing: ");
    throw;
  }
  Output out(flags);
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer(command, true);
    write_totals(json, c, outcome);
    json.end_answer();
  } else if (done) {
    out.line(c.path);
  }
  out.flush();
}

}  // namespace mckpt::impl
