// Chooses the planner by the format of the source: this is the only place that knows which format stays
// under which planner. Options of Megatron-FSDP have no meaning for other formats, and are refused there.
#include "convert/open/unsaid_order.h"
#include "convert/plan/conversion.h"
#include "convert/plan/reshard/reshard.h"
#include "convert/plan/targets/ranks.h"
#include "convert/plan/targets/torch_dist.h"
#include "core/base/error.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"
#include "mappings/fsdp/setup.h"

namespace mckpt::impl {
namespace {

// The first of the options that say how Megatron-FSDP packs parameters; "" if none is given.
std::string_view fsdp_option(const ReshardOptions& o) {
  if (std::string_view option = option_of_fsdp(o.fsdp, o.grid); !option.empty()) return option;
  if (o.fsdp.fp8 != Fp8Recipe::kNone) return "`fp8_recipe`";
  if (!o.frozen.empty()) return "`freeze`";
  return o.from.rank_states ? "`rank_states`" : "";
}

// The first of the options that say how pipeline stages divide the layers.
std::string_view pipeline_option(const ReshardOptions& o) {
  if (o.pipeline.chunks != 1) return "`vpp`";
  if (o.pipeline.first_layers) return "`first_stage_layers`";
  if (o.pipeline.last_layers) return "`last_stage_layers`";
  return o.hybrid_pattern.empty() ? "" : "`hybrid_pattern`";
}

// `instead`: what has a use for the option.
void refuse_option(const Store& source, std::string_view option, std::string_view instead) {
  if (option.empty()) return;
  throw Error(Code::kUsage, cat(option, " has no meaning for the format of the source, which stays"))
      .file(source.root())
      .found(format_text(source.format()))
      .help(cat("leave ", option, " out; ", instead));
}

// How a torch_dist has the layers of its language model. Those that are stored in both ways are Megatron's
// choice.
LayerStacks stacks_of(const Store& torch_dist) {
  bool stacked = false, indexed = false;
  for (i64 t = 0; t < torch_dist.tensor_count(); t++) {
    constexpr std::string_view kLayers = "decoder.layers.";
    const std::string_view name = torch_dist.name(t);
    const std::size_t at = name.starts_with("optimizer.") ? name.npos : name.find(kLayers);
    if (at == name.npos || at + kLayers.size() == name.size()) continue;
    const char next = name[at + kLayers.size()];
    (next >= '0' && next <= '9' ? indexed : stacked) = true;
  }
  if (stacked == indexed) return LayerStacks::kAuto;
  return stacked ? LayerStacks::kStacked : LayerStacks::kIndexed;
}

Conversion plan_torch_dist(std::unique_ptr<Store> source, const ReshardOptions& o) {
  if (o.from.checkpoint.any_model)
    throw Error(Code::kUnknownFormat, "torch_dist is written of models that mckpt has a table of")
        .file(source->root())
        .help(
            "`keep_names` too divides the rows of every tensor and keeps its name; `mckpt convert to-fsdp` gives the tensors the names of fsdp_dtensor");
  const LayerStacks layers = stacks_of(*source);
  CheckpointOptions how = o.from.checkpoint;
  how.spelling.reset();  // torch_dist has its own places for names that differ
  return plan_to_mcore(std::move(source), {.source = o.source,
                                           .target = o.target,
                                           .checkpoint = how,
                                           .weights_only = o.from.weights_only,
                                           .grid = o.grid,
                                           .pipeline = o.pipeline,
                                           .layers = layers,
                                           .hybrid_pattern = o.hybrid_pattern,
                                           .spelling = o.from.checkpoint.spelling,
                                           .values = {.vocab = o.vocab},
                                           .iteration = o.iteration,
                                           .threads = o.threads,
                                           .rank = o.rank});
}

Conversion plan_ranks(std::unique_ptr<Store> source, const ReshardOptions& o) {
  if (o.from.checkpoint.any_model)
    throw Error(Code::kUnknownFormat, "files of ranks are written of models that mckpt has a table of")
        .file(source->root())
        .help("name the folder of the model with `assets`");
  CheckpointOptions how = o.from.checkpoint;
  const std::optional<Spelling> given = how.spelling;
  how.spelling.reset();
  return plan_to_ranks(std::move(source), {.source = o.source,
                                           .target = o.target,
                                           .checkpoint = how,
                                           .grid = o.grid,
                                           .pipeline = o.pipeline,
                                           .hybrid_pattern = o.hybrid_pattern,
                                           .spelling = given.value_or(Spelling{}),
                                           .values = {.vocab = o.vocab},
                                           .iteration = o.iteration,
                                           .like_source = true,
                                           .own_spelling = given.has_value(),
                                           .weights_only = o.from.weights_only,
                                           .threads = o.threads,
                                           .rank = o.rank});
}

// A DCP folder with names that are none of Megatron's formats: FSDP2, Megatron-FSDP alone, torchtitan.
Conversion plan_own_names(std::unique_ptr<Store> source, const ReshardOptions& o) {
  if (o.from.checkpoint.spelling)
    throw Error(Code::kUsage, "names and format of this checkpoint stay, and with them its spelling")
        .file(source->root())
        .found(format_text(source->format()))
        .help("leave `spelling` out; `mckpt convert to-fsdp` makes fsdp_dtensor with it");
  if (o.from.checkpoint.assets)
    throw Error(Code::kUsage, "names and format of this checkpoint stay, whichever model it is of")
        .file(source->root())
        .found(cat(format_text(source->format()), ", with `assets`"))
        .help("leave `assets` out; `mckpt convert to-fsdp` makes fsdp_dtensor of any grid with it");
  if (o.grid.tp * o.grid.ep * o.grid.etp * o.grid.pp > 1)
    throw Error(
        Code::kUnknownPartition,
        "names and format of this checkpoint stay, and of such a checkpoint data-parallel ranks divide the rows, and no others")
        .file(source->root())
        .expected("`tp` 1, `ep` 1, `etp` 1 and `pp` 1")
        .found(to_string(o.grid))
        .help(
            "choose a grid of `dp`, `cp` and `hsdp`; `mckpt convert to-fsdp` makes fsdp_dtensor of any grid");
  ReshardOptions how = o;
  how.from.checkpoint.any_model = how.from.keep_names = true;
  return plan_sharded_to_fsdp(std::move(source), how);
}

}  // namespace

Conversion plan_reshard(const ReshardOptions& o) {
  refuse_contradictions(o);
  std::unique_ptr<Store> source = open_store(o.source, o.from.checkpoint.model.files);
  const bool ranks = source->driver().ranks_apart;
  const std::optional<DcpDialect> dialect = source->driver().dialect;
  const bool core = dialect == DcpDialect::kTorchDist && !o.from.keep_names;
  const bool own = dialect && dialect != DcpDialect::kTorchDist && dialect != DcpDialect::kFsdpDtensor;
  const bool named = own && !o.fsdp.saves_state_dict();
  if (core || ranks || named)
    refuse_option(*source, fsdp_option(o), "`mckpt convert to-fsdp` makes a checkpoint of Megatron-FSDP");
  if (!core && !ranks)
    refuse_option(*source, pipeline_option(o), "`mckpt convert to-mcore` and `to-pt` write such stages");
  if (core) return plan_torch_dist(std::move(source), o);
  if (ranks) return plan_ranks(std::move(source), o);
  return named ? plan_own_names(std::move(source), o) : plan_sharded_to_fsdp(std::move(source), o);
}

}  // namespace mckpt::impl
