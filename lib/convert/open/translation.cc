// torch_dist stores the parts of fused tensors apart, or one after the other as a single rank has them, so
// its cells are one, whatever grid wrote it.
#include "convert/open/translation.h"

#include <algorithm>
#include <optional>

#include "convert/dialects/ranks/pieces.h"
#include "convert/dialects/state_dict/pieces.h"
#include "convert/dialects/torch_dist/pieces.h"
#include "convert/layers/layer_migration.h"
#include "convert/layers/model_layers.h"
#include "convert/open/options.h"
#include "convert/views/piece_store.h"
#include "core/base/text.h"
#include "hf/model.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/run/sizes.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

DcpDialect dialect_of(const Store& store) { return dcp_dialect(store).value_or(DcpDialect::kPlain); }

// The facts of the run that wrote files of ranks. Numbers of layers, MTP layers and experts that are not the
// model's are left out, and become an oddity, if the user accepts them.
RunSizes facts_of_ranks(RunSizes run, const ModelConfig& model, const CheckpointOptions& options,
                        std::vector<Finding>& oddities) {
  if (std::ranges::find(options.accept, Code::kNumberGap) == options.accept.end()) return run;
  auto accept = [&](std::string_view field, std::optional<i64>& said, i64 own) {
    if (said && *said != own)
      oddities.push_back({.code = Code::kNumberGap,
                          .message = cat("the args of the files say ", field, " ", said_size(*said),
                                         ", the model has ", own),
                          .warning = true});
    said.reset();
  };
  accept("num_layers", run.layers, std::ssize(model.text.layers));
  if (model.moe.experts > 0) accept("num_experts", run.experts, model.moe.experts);
  if (model.mtp.depths > 0) accept("mtp_num_layers", run.mtp_layers, model.mtp.depths);
  return run;
}

}  // namespace

bool gets_names_of_fsdp(const Store& store, KeyNames names) {
  const DcpDialect dialect = dialect_of(store);
  const bool named = dialect == DcpDialect::kStateDict || dialect == DcpDialect::kMegatronFsdp;
  return named && names != KeyNames::kOfModel && !store.driver().ranks_apart;
}

Translation translated(std::unique_ptr<Store>& store, const HfModel& model, RunSetup& setup,
                       const RunSizes& run, KeyTable::Cells cells, const CheckpointOptions& options,
                       const LayerPattern* members) {
  Translation out;
  out.cells = cells;
  const ModelMap& map = *model.map;
  const DcpDialect dialect = dialect_of(*store);
  const bool whole = makes_whole(options.names), as_stored = options.states == StateUse::kAsStored;
  auto take = [&](TranslatedRun made) {
    out.store = std::move(made.store);
    out.facts = std::make_unique<RunFacts>(std::move(made.facts));
  };
  if (store->driver().ranks_apart) {
    const RunSizes facts = facts_of_ranks(run, map.model(), options, out.oddities);
    RankPieces joined = rank_pieces(std::move(store), map, setup, facts,
                                    {.copies = options.copies == CopyUse::kRead,
                                     .states = options.states == StateUse::kRead || as_stored,
                                     .apart = as_stored,
                                     .compare = options.copies != CopyUse::kIgnore});
    out.left_states = std::move(joined.states);
    out.cells = {joined.grid.tp, joined.grid.etp};
    take(std::move(joined));
  } else if (dialect == DcpDialect::kTorchDist) {
    if (!model.plain)
      if (auto moved = layers_as_in_model(*store, map, setup.groups, options.weights_only()))
        store = migrated(std::move(store), *moved, true);
    const OddStates odd = options.weights_only()              ? OddStates::kIgnored
                          : options.states == StateUse::kRead ? OddStates::kRefused
                                                              : OddStates::kKept;
    take(torch_dist_pieces(std::move(store), map, setup, odd));
    out.cells = {1, 1};
  } else if (gets_names_of_fsdp(*store, options.names)) {
    const ModelMap* known = model.plain || whole ? nullptr : &map;
    take(state_dict_pieces(std::move(store), dialect, known, setup, cells, options.weights_only(), whole,
                           setup.groups ? nullptr : members));
  } else if (dialect == DcpDialect::kFsdpDtensor && !model.plain && !setup.groups) {
    if (auto moved = layers_as_in_model(*store, map, nullptr, options.weights_only()))
      out.store = migrated(std::move(store), *moved);
  }
  return out;
}

}  // namespace mckpt::impl
