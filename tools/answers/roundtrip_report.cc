// Prints the result of a round trip as text or JSON.
//
//   grid     tp=2 cp=1 ep=1 etp=1 pp=1 dp=2, 4 ranks, Megatron-FSDP v1, optim_grads_params, cpu
//   model    45 tensors, 33 Megatron parameters
//   load        0.012 s      1.20 GB/s  14.5 KiB            one line for each phase, repeated phases too
//   memory   weights 29.0 KiB, gathered at most 8.00 KiB, peak RSS 60.1 MiB a rank
//   calls    load     11 all_gather, 1 exchange a rank at most; all ranks received 29.0 KiB
//            instead of 33 broadcasts, one for each parameter, with 87.0 KiB
//   equal: every bit came back
#include "tools/answers/roundtrip_report.h"

#include <cstdio>

#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "core/items/shape.h"
#include "live/model/group.h"
#include "live/model/model.h"
#include "live/round_trip/round_trip.h"
#include "mappings/model/expand.h"
#include "mappings/model/source_table.h"
#include "runtime/comm/comm.h"
#include "tools/options/of_commands/roundtrip_flags.h"
#include "tools/render/answer_json.h"
#include "tools/render/progress.h"
#include "tools/run/logits.h"

namespace mckpt::impl {
namespace {

// Gigabytes (10^9) in a second; 0 for a phase too short to be measured.
double rate(const RoundTripPhase& phase) {
  return phase.seconds > 0 ? static_cast<double>(phase.bytes) / phase.seconds / 1e9 : 0;
}

// Phases may be repeated.
const RoundTripPhase* last_of(const RoundTripResult& result, std::string_view name) {
  const RoundTripPhase* last = nullptr;
  for (const RoundTripPhase& p : result.phases)
    if (p.name == name) last = &p;
  return last;
}

// The cost of loading if one rank read the files and broadcast each parameter to the others: a call for
// each, and all bytes of the files to every other rank.
CallCount broadcast_each(const ModelMap& map, i64 ranks) {
  CallCount naive{map.parameter_count(), 0};
  for (i32 t = 0; t < map.sources().size(); t++)
    naive.received += dtype_bytes(map.sources()[t].dtype, Shape(map.sources()[t].dims).items()) * (ranks - 1);
  return naive;
}

void write_collectives(JsonWriter& json, const CallCounts& counts) {
  const CallCount total = counts.total();
  json.key("collectives").begin_object();
  json.field("calls", total.calls).field("received_bytes", total.received);
  json.key("by_call").begin_array();
  for (std::size_t c = 0; c < kCommCalls; c++)
    json.begin_object()
        .field("call", call_name(static_cast<CommCall>(c)))
        .field("calls", counts.of[c].calls)
        .field("received_bytes", counts.of[c].received)
        .end_object();
  json.end_array().end_object();
}

// "11 all_gather, 1 exchange a rank at most; all ranks received 29.0 KiB"
std::string collectives_text(const CallCounts& counts) {
  std::string calls;
  for (std::size_t c = 0; c < kCommCalls; c++)
    if (const CallCount& one = counts.of[c]; one.calls > 0)
      calls +=
          cat(calls.empty() ? "" : ", ", with_commas(one.calls), " ", call_name(static_cast<CommCall>(c)));
  return cat(calls, " a rank at most; all ranks received ", human_bytes(counts.total().received));
}

void write_calls(Output& out, const RoundtripReport& report, i64 ranks) {
  std::string_view front = "calls    ";
  for (const char* name : {"load", "unshard"}) {
    const RoundTripPhase* phase = last_of(report.result, name);
    if (!phase || phase->collectives.total().calls == 0) continue;
    out.line(cat(front, name, std::string(9 - std::string_view(name).size(), ' '),
                 collectives_text(phase->collectives)));
    front = "         ";
    if (std::string_view(name) != "load") continue;
    const CallCount naive = broadcast_each(report.map, ranks);
    out.line(cat(front, "         instead of ", counted(naive.calls, "broadcast"),
                 ", one for each parameter, with ", human_bytes(naive.received)));
  }
}

// The root of the module tree has no name and is called "model".
std::string module_name(const LiveModel& model, i32 module) {
  return module == 0 ? "model" : model.modules()[module].name;
}

// The parameter groups of the live model as they were packed, for comparison with a training run's own log.
void write_groups(JsonWriter& json, const LiveModel& model) {
  json.key("groups").begin_array();
  for (i32 module : model.sharded_modules())
    for (const std::unique_ptr<LiveGroup>& group : model.groups_of(module)) {
      json.begin_object().field("module", module_name(model, module)).field("expert", group->bucket().expert);
      json.field("parameters", static_cast<i64>(group->bucket().members.size()));
      json.field("dtype", dtype_name(group->how().compute));
      json.field("stored_dtype", dtype_name(group->stored_type()));
      json.field("bucket_items", group->buffer().bucket_items);
      json.field("shards", group->buffer().shards);
      json.field("shard_items", group->buffer().shard_items).end_object();
    }
  json.end_array();
}

void write_logits(JsonWriter& json, const std::optional<LogitsAnswer>& logits) {
  if (!logits) {
    json.null_field("logits");
    return;
  }
  json.key("logits").begin_object();
  json.field("equal", logits->equal).field("tokens", logits->tokens).field("layers", logits->layers);
  auto put = [&](std::string_view name, const auto& value) {
    value ? json.field(name, *value) : json.null_field(name);
  };
  put("first_layer", logits->first_layer), put("largest_difference", logits->largest_difference);
  put("relative_l2", logits->relative_l2), put("same_next_tokens", logits->same_next_tokens);
  json.end_object();
}

void write_json(Output& out, const RoundtripReport& report, i64 peak_rss, const LiveModel& model) {
  const RoundTripResult& r = report.result;
  const RoundtripFlags& options = report.options;
  bool differs = r.difference_count > 0;
  AnswerJson json(out);
  json.begin_answer("roundtrip", !differs);
  r.compared || differs ? json.field("equal", !differs) : json.null_field("equal");
  json.field("tensors", static_cast<i64>(report.map.sources().size()));
  json.field("parameters", report.map.parameter_count()).field("grid", to_string(model.setup().grid));
  json.field("ranks", model.world().size()).field("device", options.device).field("threads", options.threads);
  json.field("engine", engine_name(model.setup().fsdp.engine));
  json.field("strategy", strategy_name(model.setup().fsdp.strategy));
  for (const RoundTripPhase& p : r.phases)
    if (&p == last_of(r, p.name)) json.field(cat(p.name, "_seconds"), p.seconds);
  json.key("phases").begin_array();
  for (const RoundTripPhase& p : r.phases) {
    json.begin_object().field("name", p.name).field("seconds", p.seconds).field("bytes", p.bytes);
    write_collectives(json, p.collectives);
    json.end_object();
  }
  json.end_array();
  const CallCount naive = broadcast_each(report.map, model.world().size());
  json.key("broadcast_each_parameter").begin_object();
  json.field("calls", naive.calls).field("received_bytes", naive.received).end_object();
  json.field("cp_slices", r.cp_slices);
  json.field("weights_bytes", r.weights_bytes).field("gathered_bytes", r.gathered_bytes);
  json.field("peak_rss", peak_rss);
  write_groups(json, model);
  options.output ? json.field("output", *options.output) : json.null_field("output");
  options.checkpoint ? json.field("checkpoint", *options.checkpoint) : json.null_field("checkpoint");
  write_logits(json, report.logits);
  json.field("difference_count", r.difference_count).key("differences").begin_array();
  for (const std::string& d : r.differences) json.value(d);
  json.end_array();
  json.end_answer();
}

std::string groups_text(const LiveModel& model) {
  i64 groups = 0, experts = 0;
  for (LiveGroup* group : model.groups()) groups++, experts += group->bucket().expert;
  std::string text = counted(groups, "parameter group");
  if (experts > 0) text += cat(", ", with_commas(experts), " of experts");
  return cat(text, ", in ", counted(std::ssize(model.sharded_modules()), "sharded module"));
}

void write_text(Output& out, const RoundtripReport& report, i64 peak_rss, const LiveModel& model) {
  const RoundTripResult& r = report.result;
  out.line(cat("grid     ", to_string(model.setup().grid), ", ", counted(model.world().size(), "rank"), ", ",
               "Megatron-FSDP ", engine_name(model.setup().fsdp.engine), ", ",
               strategy_name(model.setup().fsdp.strategy), ", ", report.options.device));
  out.line(cat("model    ", counted(report.map.sources().size(), "tensor"), ", ",
               with_commas(report.map.parameter_count()), " Megatron parameters"));
  out.line(cat("groups   ", groups_text(model)));
  for (const RoundTripPhase& p : r.phases) {
    char numbers[64];
    if (p.bytes > 0 && p.seconds >= 0.001)
      std::snprintf(numbers, sizeof numbers, "%8.3f s %9.2f GB/s  ", p.seconds, rate(p));
    else
      std::snprintf(numbers, sizeof numbers, "%8.3f s %9s        ", p.seconds, "-");
    out.line(
        cat(p.name, std::string(9 - std::string_view(p.name).size(), ' '), numbers, human_bytes(p.bytes)));
  }
  if (r.cp_slices > 0)
    out.line(cat("slices   ", counted(r.cp_slices, "context-parallel slice"),
                 " of all ranks compared with the source"));
  out.line(cat("memory   weights ", human_bytes(r.weights_bytes), ", gathered at most ",
               human_bytes(r.gathered_bytes), ", peak RSS ", human_bytes(peak_rss), " a rank"));
  write_calls(out, report, model.world().size());
  if (report.logits) out.line(cat("logits   ", escaped(report.logits->line, 600)));
  for (const std::string& d : r.differences) out.line(cat("differs  ", d));
  if (i64 more = r.difference_count - std::ssize(r.differences); more > 0)
    out.line(cat("         and ", with_commas(more), " more"));
  if (r.difference_count > 0)
    out.line("NOT EQUAL");
  else
    out.line(r.compared ? "equal: every bit came back" : "stopped before anything was exported");
}

}  // namespace

void write_roundtrip(const GlobalFlags& flags, const RoundtripReport& report, const LiveModel& model) {
  i64 peak_rss = status_bytes("VmHWM");
  model.world().all_reduce({&peak_rss, 1}, Reduce::kMax);
  if (model.world().rank() != 0) return;
  Output out(flags);
  out.json() ? write_json(out, report, peak_rss, model) : write_text(out, report, peak_rss, model);
  out.flush();
}

}  // namespace mckpt::impl
