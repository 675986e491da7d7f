// Refuses grids for which a table would be needed, and says what happens to the names.
#include "convert/plan/reshard/unknown.h"

#include "convert/dialects/fsdp/run.h"
#include "convert/facts/run_facts.h"
#include "convert/keys/key_table.h"
#include "convert/open/checkpoint.h"
#include "convert/plan/reshard/reshard.h"
#include "convert/plan/reshard/reshard_source.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/param_groups.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

void refuse_ranks(const ReshardSource& source, const Grid& grid) {
  source.refuse_ranks_of_unknown_model();
  if (grid.tp * grid.ep * grid.etp > 1)
    throw Error(Code::kUnknownPartition,
                "mckpt has no table of this model, so it is not known how ranks split its parameters")
        .expected("`tp` 1, `ep` 1 and `etp` 1")
        .found(to_string(grid))
        .help(
            source.asked_for_any_model()
                ? "`assets` names the folder of the model; or choose a grid of `dp`, `cp` and `hsdp`"
                : "reshard the checkpoint before its layers get the names of another form, or after convert hybrid-to-gpt or ungroup; or choose a grid of `dp`, `cp` and `hsdp`");
}

void note_names(const ReshardSource& source, const ReshardOptions& options, Notes& notes) {
  const bool v2 = options.fsdp.saves_state_dict();
  if (!source.asked_for_any_model())
    notes.note(
        "the layers have the names of another form than those of the model in hf_assets, and keep them");
  if (source.model().translated() && !v2)
    notes.note(
        "names   become those of fsdp_dtensor: model.X becomes model.module.X, also in the names of optimizer states; `mckpt convert reshard` keeps the names");
  notes.note(
      options.modules.empty()
          ? "the model is treated as unknown: all parameters of one type are packed into one buffer, in the order of the checkpoint"
          : "the model is treated as unknown: the modules of `fsdp_module` have buffers of their own");
}

// Parameters that the optimizer trains: those in its lists, or of which there are options of a group.
NameSet<std::string> trained_by(const CheckpointModel& model) {
  NameSet<std::string> out;
  for (const ListedGroup& group : listed_groups(model.on_disk()))
    for (const std::string& name : group.names) out.insert(*model_key(cat("model.", name)));
  for (const RunFact& fact : model.facts().all)
    if (fact.kind == FactKind::kOption) out.insert(*model_key(cat("model.", fact.parameter)));
  return out;
}

}  // namespace

std::optional<ListedParameters> set_up_unknown(const ReshardSource& source, const ReshardOptions& options,
                                               FsdpRun& run, Notes& notes) {
  refuse_ranks(source, run.grid);
  if (run.fsdp.fp8 != Fp8Recipe::kNone)
    throw Error(Code::kBadLayout, "which weights of a model without a table are of 8 bits is not known")
        .note("they are those of Transformer Engine's linear layers")
        .help("leave out `fp8_recipe`");
  // Engine v2 never cuts a row, whatever shapes are packed beside each other.
  run.fsdp.engine = Engine::kV2;
  std::optional<ListedParameters> listed;
  if (options.fsdp.saves_state_dict()) {
    listed.emplace(source.store(), trained_by(source.model()), options.threads);
    options.modules.refuse_unmatched(source.model().keys().parameters());
  }
  note_names(source, options, notes);
  return listed;
}

}  // namespace mckpt::impl
