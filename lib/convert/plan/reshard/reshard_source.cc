// Opens what a checkpoint is resharded from. Three kinds of checkpoints are distinguished: of a known model,
// of a model that no table knows but with the names of a known format, and with names of its own
// (is_plain_source).
#include "convert/plan/reshard/reshard_source.h"

#include "convert/dialects/ranks/states.h"
#include "convert/facts/run_facts.h"
#include "convert/open/left_states.h"
#include "convert/open/options.h"
#include "convert/open/source_model.h"
#include "convert/plan/source_identity.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "hf/folder/assets.h"
#include "hf/model.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/sizes.h"
#include "io/dcp/write/layout.h"
#include "io/file/folder.h"
#include "io/store/finding.h"
#include "io/store/joined_store.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

// Modules of Megatron whose parameters, if they are not stored in parts, may hold several tensors of which
// every tensor-parallel rank has a share: gate and up, z x B C dt, q k v of a gated delta net.
constexpr std::string_view kFusedModules[] = {".in_proj.", ".conv1d.", ".conv1d_", ".linear_fc1."};

// "decoder.layers.0.mlp.experts.linear_fc1.weight12", but not ".weight_w" and ".weight.query".
bool may_be_by_rank(std::string_view name) {
  for (std::string_view module : kFusedModules) {
    std::size_t at = name.rfind(module);
    if (at == name.npos) continue;
    std::string_view rest = name.substr(at + module.size());
    while (!rest.empty() && rest.back() >= '0' && rest.back() <= '9') rest.remove_suffix(1);
    if (rest == "weight" || rest == "bias") return true;
  }
  return false;
}

}  // namespace

CheckedPart parts_of(const ReshardSourceOptions& options) {
  return options.weights_only || options.rank_states ? CheckedPart::kModel : CheckedPart::kAll;
}

CheckpointOptions opening_of(const ReshardSourceOptions& options) {
  CheckpointOptions out = options.checkpoint;
  out.states = parts_of(options) == CheckedPart::kModel ? StateUse::kLeft : StateUse::kRead;
  if (out.names != KeyNames::kWhole) out.names = KeyNames::kOfFsdp;
  return out;
}

void refuse_contradictions(const ReshardSourceOptions& o) {
  bool any_model = o.checkpoint.any_model;
  if (o.weights_only && o.rank_states)
    throw Error(Code::kUsage,
                "`rank_states` adds optimizer states, `weights_only` leaves them out: give only one of them");
  if (!o.rank_states && (o.source_ep || o.source_hsdp))
    throw Error(
        Code::kUsage,
        "`source_ep` and `source_hsdp` describe the run that wrote the files of `rank_states`: give it too");
  if (any_model && (o.checkpoint.assets || o.rank_states))
    throw Error(Code::kUsage,
                "`any_model` is for models without tables: `assets` and `rank_states` need the tables");
  if (o.checkpoint.spelling && any_model)
    throw Error(Code::kUsage, "`any_model` is for models without tables: `spelling` needs the tables")
        .help("leave out one of the two");
  if (o.checkpoint.spelling && o.rank_states)
    throw Error(
        Code::kUsage,
        "files of `rank_states` have the names of the run that wrote them, and `spelling` would change them")
        .help("reshard with `rank_states` first, and give the result another spelling then");
  if (o.keep_names && !any_model)
    throw Error(Code::kUsage, "`keep_names` is for models without tables").help("give `any_model` too");
}

bool is_plain_source(const Store& store, const ReshardSourceOptions& options) {
  return options.checkpoint.any_model && (dcp_dialect(store) == DcpDialect::kPlain || options.keep_names);
}

ReshardSource::ReshardSource(const CheckpointModel& checkpoint, const ReshardSourceOptions& options)
    : options_(options), model_(checkpoint) {
  if (!options.weights_only) refuse_left_states(model_);
  if (!any_model() && !makes_whole(options_.checkpoint.names)) return;
  std::optional<std::vector<DcpName>> names = dcp_names(model_.on_disk());
  if (!names) return;
  paths_.emplace();
  for (const DcpName& name : *names) {
    places_.emplace(name.text, std::ssize(places_));
    paths_->emplace(name.text, name);
  }
}

ReshardSource::~ReshardSource() = default;

const Store& ReshardSource::store() const {
  return joined_ ? static_cast<const Store&>(*joined_) : model_.store();
}
bool ReshardSource::any_model() const { return model_.model().plain != nullptr; }

DcpName ReshardSource::named(const std::string& item) const {
  auto at = paths_ ? paths_->find(item) : DcpPaths::const_iterator();
  return paths_ && at != paths_->end() ? at->second : DcpName{item, nesting_dots(item)};
}

i64 ReshardSource::place_of(std::string_view item) const {
  auto at = places_.find(std::string(item));
  return at != places_.end() ? at->second : std::ssize(places_);
}

void ReshardSource::refuse_ranks_of_unknown_model() const {
  if (!any_model()) return;
  const Store& store = model_.store();
  const RunSizes& run = model_.run();
  auto refuse = [&](std::string_view arg, i64 ranks) {
    throw Error(
        Code::kUnknownPartition,
        "mckpt has no table of this model, so it cannot join the parts that several tensor-parallel ranks wrote: fused tensors are stored rank after rank")
        .file(store.root())
        .expected(cat(arg, " 1"))
        .found(ranks)
        .help(
            asked_for_any_model()
                ? "name the model with `assets` HF_DIR instead of `any_model`; or use `keep_names`, which leaves args as they are, for a training run with the same tensor-parallel ranks"
                : "reshard the checkpoint before its layers get the names of another form, or after convert hybrid-to-gpt or ungroup");
  };
  if (run.tensor_ranks.value_or(1) != 1) refuse("tensor_model_parallel_size", *run.tensor_ranks);
  if (run.expert_tensor_ranks.value_or(1) != 1)
    refuse("expert_tensor_parallel_size", *run.expert_tensor_ranks);
  if (run.tensor_ranks || dcp_dialect(model_.on_disk()) != DcpDialect::kFsdpDtensor) return;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (may_be_by_rank(store.name(t)))
      throw Error(Code::kUnknownPartition,
                  "the number of tensor-parallel ranks that wrote the checkpoint is not known")
          .file(store.root())
          .tensor(store.name(t))
          .expected("one rank, as mckpt has no table of this model")
          .note(
              "tensors may be stored fused, rank after rank, so the place of every row depends on that number")
          .help("`source_tp` 1 says that one rank wrote it");
}

// The training run that wrote the files is the one that wrote the checkpoint. It matters how many ranks
// shared what.
void ReshardSource::join_rank_states(const Adjust& adjust) {
  if (!options_.rank_states) return;
  if (any_model())
    throw Error(
        Code::kUnknownAssets,
        "`rank_states` needs the model's table, but the layers of this checkpoint are named differently")
        .file(model_.store().root())
        .help("reshard the checkpoint before its layers get the names of another form");
  const RunSizes& run = model_.run();
  if (!run.tensor_ranks)
    throw Error(Code::kUnknownPartition,
                "the number of tensor-parallel ranks that wrote the checkpoint is not known")
        .file(model_.store().root())
        .help("give the number with `source_tp` N");
  Grid grid;
  const Store& disk = model_.on_disk();
  grid.tp = *run.tensor_ranks;
  grid.etp = run.expert_tensor_ranks.value_or(1);
  grid.ep = agreed_ranks(disk, run.expert_ranks, "source_ep", options_.source_ep).value_or(1);
  grid.hsdp = agreed_ranks(disk, run.fsdp_instances, "source_hsdp", options_.source_hsdp).value_or(1);
  states_ = std::make_unique<RankStates>(*options_.rank_states, options_.checkpoint.model.files, model_.map(),
                                         model_.setup(), grid, adjust);
  joined_ = std::make_unique<JoinedStore>(model_.store(), *states_);
}

bool ReshardSource::drops_tensor(i32 tensor) const {
  bool optimizer = is_optimizer_key(store().name(tensor));
  return optimizer && (options_.weights_only || (joined_ && tensor < model_.store().tensor_count()));
}

bool ReshardSource::has_states() const {
  for (i32 t = 0; t < store().tensor_count(); t++)
    if (state_name(store().name(t)) && !drops_tensor(t)) return true;
  return false;
}

RunFacts ReshardSource::facts() const {
  if (!states_) return model_.facts();
  RunFacts of_ranks = states_->facts(), options = of_ranks;
  std::erase_if(options.all, [](const RunFact& f) { return f.kind != FactKind::kOption; });
  return joined(joined(std::move(options), model_.facts()), std::move(of_ranks));
}

SideFiles ReshardSource::assets() const {
  const OpenOptions& opening = model_.on_disk().opening();
  if (!any_model())
    return plan_assets(model_.assets_path(),
                       tensor_table_json(model_.map().sources(), model_.model().expert_layout,
                                         model_.model().map_text, original_files(model_.model())),
                       opening);
  const std::string own = own_assets(model_.on_disk());
  return own.empty() ? SideFiles{} : plan_assets(own, tensor_table_text(Folder(own, opening)), opening);
}

SourceIdentity ReshardSource::identity() const {
  SourceIdentity out = source_identity(store());
  out.files += cat(mapping_identity(model_.model()), model_.run().tensor_ranks.value_or(0), " ",
                   model_.run().expert_tensor_ranks.value_or(0), " ", options_.source_ep.value_or(0), " ",
                   options_.source_hsdp.value_or(0));
  return out;
}

}  // namespace mckpt::impl
