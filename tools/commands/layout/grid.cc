// Goes through the sizes one by one, and remembers where each came from for the note.
#include "tools/commands/layout/grid.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/complete_grid.h"
#include "io/dcp/run/sizes.h"
#include "mappings/fsdp/setup.h"
#include "tools/options/command_line.h"
#include "tools/options/of_commands/layout_options.h"

namespace mckpt::impl {
namespace {

// Takes each number from the first of: the options, the args, the default.
class Chooser {
 public:
  Chooser(const CommandLine& line, const RunSizes* args, LayoutGrid& out)
      : line_(line), args_(args), out_(out) {}

  // `said`: what the args say. Sets `value` only from the args.
  template <typename T>
  void choose(std::string_view name, std::optional<T> RunSizes::*said, T& value) {
    std::string_view from = line_.given(cat("--", name)) ? kFromOption : kByDefault;
    if (from == kByDefault && args_ && args_->*said) {
      value = *(args_->*said);
      from = kFromArgs;
    }
    out_.origins.push_back({name, "", from});
  }

 private:
  const CommandLine& line_;
  const RunSizes* args_;
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

// "tp=2 ep=2 from the args of the checkpoint; dp=4 from the options"; "" if the args say nothing.
std::string origins_text(const LayoutGrid& l) {
  std::string args, options;
  for (const GridOrigin& o : l.origins) {
    std::string& to = o.from == kFromArgs ? args : options;
    if (o.from != kByDefault) to += cat(to.empty() ? "" : " ", o.name, "=", o.value);
  }
  if (args.empty()) return "";
  return cat(args, " from the args of the checkpoint",
             options.empty() ? "" : cat("; ", options, " from the options"));
}

void add_notes(LayoutGrid& l, const LayoutFlags& flags, const RunSizes* args) {
  if (std::string text = origins_text(l); !text.empty()) l.notes.note(cat("grid    ", text));
  if (args && args->pipeline_stages.value_or(1) > 1 && l.grid.pp == 1)
    l.notes.note(
        cat("pp      ", *args->pipeline_stages,
            " stages trained the checkpoint; Megatron-FSDP has none, so the layout is that of one stage"));
  bool chosen = !flags.grid.dp() && !(args && args->data_ranks);
  if (chosen)
    l.notes.note(cat("dp=", l.grid.dp, " chosen, the smallest that works: ", counted(l.grid.world(), "rank"),
                     " in all"));
}

}  // namespace

LayoutGrid layout_grid(const CommandLine& line, const LayoutFlags& flags, const RunSizes* args) {
  LayoutGrid l{.grid = flags.grid.sizes()};
  l.strategy = flags.fsdp.setup(Grid{}).strategy;
  Chooser from(line, args, l);
  from.choose("tp", &RunSizes::tensor_ranks, l.grid.tp);
  from.choose("cp", &RunSizes::context_ranks, l.grid.cp);
  from.choose("ep", &RunSizes::expert_ranks, l.grid.ep);
  from.choose("etp", &RunSizes::expert_tensor_ranks, l.grid.etp);
  from.choose("hsdp", &RunSizes::fsdp_instances, l.grid.hsdp);
  i64 dp = flags.grid.dp().value_or(0);
  from.choose("dp", &RunSizes::data_ranks, dp);
  from.choose("hsdp-outer", &RunSizes::outer, l.grid.outer);
  from.choose("strategy", &RunSizes::strategy, l.strategy);
  bool has_dp = l.origins[5].from != kByDefault;
  l.grid.dp = dp;
  add_values(l);
  try {
    l.grid = complete_grid(l.grid, has_dp ? std::optional(dp) : std::nullopt);
  } catch (Error& e) {
    if (std::string text = origins_text(l); !text.empty()) e.note(text);
    throw;
  }
  add_notes(l, flags, args);
  return l;
}

}  // namespace mckpt::impl
