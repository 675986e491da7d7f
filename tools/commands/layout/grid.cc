// Goes through the sizes one by one, and remembers where each came from for the note.
#include "tools/commands/layout/grid.h"

#include "convert/dialects/fsdp/packed_by.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/complete_grid.h"
#include "io/dcp/run/sizes.h"
#include "mappings/fsdp/setup.h"
#include "tools/options/command_line.h"
#include "tools/options/of_commands/layout_options.h"

namespace mckpt::impl {
namespace {

// The sizes that boxes show. Context-parallel ranks are among the data-parallel ones; the args may tell them
// apart.
RunSizes sizes_of_boxes(const PackedBy& by, const RunSizes* args) {
  const Grid& g = by.guess.grid;
  RunSizes out;
  out.tensor_ranks = g.tp, out.expert_ranks = g.ep, out.expert_tensor_ranks = g.etp;
  const i64 cp = args ? args->context_ranks.value_or(1) : 1;
  if (g.dp % cp == 0) out.data_ranks = g.dp / cp;
  out.fsdp_instances = g.hsdp;
  if (g.hsdp > 1) out.outer = g.outer;
  if (const std::vector<Strategy> strategies = by.strategies(); !strategies.empty())
    out.strategy = strategies[0];
  return out;
}

// Takes each number from the first of: the options, the args, the boxes, the default.
class Chooser {
 public:
  Chooser(const CommandLine& line, const RunSizes* args, const RunSizes& boxes, LayoutGrid& out)
      : line_(line), args_(args), boxes_(boxes), out_(out) {}

  // `said`: what the args, and the boxes, say. Sets `value` only from these. Returns where the value is from.
  template <typename T>
  std::string_view choose(std::string_view name, std::optional<T> RunSizes::*said, T& value) {
    std::string_view from = line_.given(cat("--", name)) ? kFromOption : kByDefault;
    if (from == kByDefault && args_ && args_->*said) {
      value = *(args_->*said);
      from = kFromArgs;
    } else if (from == kByDefault && boxes_.*said) {
      value = *(boxes_.*said);
      from = kFromBoxes;
    }
    out_.origins.push_back({name, "", from});
    return from;
  }

 private:
  const CommandLine& line_;
  const RunSizes* args_;
  const RunSizes& boxes_;
  LayoutGrid& out_;
};

// The values of the grid, in the order in which they were chosen.
void add_values(LayoutGrid& l) {
  const Grid& g = l.grid;
  const std::string values[] = {cat(g.tp),
                                cat(g.cp),
                                cat(g.ep),
                                cat(g.etp),
                                cat(g.hsdp),
                                cat(g.dp),
                                g.outer == HsdpOuter::kShard ? "shard" : "replicate",
                                std::string(strategy_name(l.strategy))};
  for (std::size_t i = 0; i < l.origins.size(); i++) l.origins[i].value = values[i];
}

// "tp=2 ep=2 from the args of the checkpoint; dp=4 from the options"; "" if args and boxes say nothing.
std::string origins_text(const LayoutGrid& l) {
  std::string out;
  bool found = false;
  constexpr std::pair<std::string_view, std::string_view> kOrigins[] = {
      {kFromArgs, "the args of the checkpoint"}, {kFromBoxes, "its boxes"}, {kFromOption, "the options"}};
  for (const auto& [origin, words] : kOrigins) {
    std::string values;
    for (const GridOrigin& o : l.origins)
      if (o.from == origin) values += cat(values.empty() ? "" : " ", o.name, "=", o.value);
    if (values.empty()) continue;
    found |= origin != kFromOption;
    out += cat(out.empty() ? "" : "; ", values, " from ", words);
  }
  return found ? out : "";
}

void add_notes(LayoutGrid& l, const RunSizes* args, bool has_dp) {
  if (std::string text = origins_text(l); !text.empty()) l.notes.note(cat("grid    ", text));
  if (args && args->pipeline_stages.value_or(1) > 1 && l.grid.pp == 1)
    l.notes.note(
        cat("pp      ", *args->pipeline_stages,
            " stages trained the checkpoint; Megatron-FSDP has none, so the layout is that of one stage"));
  if (!has_dp)
    l.notes.note(cat("dp=", l.grid.dp, " chosen, the smallest that works: ", counted(l.grid.world(), "rank"),
                     " in all"));
}

}  // namespace

LayoutGrid layout_grid(const CommandLine& line, const LayoutFlags& flags, const RunSizes* args,
                       const PackedBy* by) {
  LayoutGrid l{.grid = flags.grid.sizes()};
  l.strategy = flags.fsdp.setup(Grid{}).strategy;
  const RunSizes boxes = by ? sizes_of_boxes(*by, args) : RunSizes{};
  Chooser from(line, args, boxes, l);
  from.choose("tp", &RunSizes::tensor_ranks, l.grid.tp);
  from.choose("cp", &RunSizes::context_ranks, l.grid.cp);
  from.choose("ep", &RunSizes::expert_ranks, l.grid.ep);
  from.choose("etp", &RunSizes::expert_tensor_ranks, l.grid.etp);
  from.choose("hsdp", &RunSizes::fsdp_instances, l.grid.hsdp);
  i64 dp = flags.grid.dp().value_or(0);
  const bool has_dp = from.choose("dp", &RunSizes::data_ranks, dp) != kByDefault;
  const bool gives_outer = from.choose("hsdp-outer", &RunSizes::outer, l.grid.outer) == kFromOption;
  from.choose("strategy", &RunSizes::strategy, l.strategy);
  l.grid.dp = dp;
  // The args of a run without instances may name a way to relate them.
  if (l.grid.hsdp == 1 && !gives_outer) l.grid.outer = HsdpOuter::kReplicate;
  add_values(l);
  try {
    l.grid = complete_grid(l.grid, has_dp ? std::optional(dp) : std::nullopt);
  } catch (Error& e) {
    if (std::string text = origins_text(l); !text.empty()) e.note(text);
    throw;
  }
  add_notes(l, args, has_dp);
  if (by && args)
    if (const std::vector<std::string> unlike = contradictions(*by, *args); !unlike.empty())
      l.notes.warn(cat("the args and the boxes of the checkpoint disagree: ", listed(unlike, unlike.size())));
  return l;
}

}  // namespace mckpt::impl
