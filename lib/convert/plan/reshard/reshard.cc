// Plans a resharding. The keys of the source are found again in a key table of the same model for the new
// grid:
//
//   tensors of the model section   chunks of the new FsdpPlan, cut from the source's boxes
//   states of the optimizer        companions of their keys: cut as the keys are
//   all other tensors              copied whole, by the last rank
//   objects                        objects.h, state_dict_objects.h
//
// Where fused tensors are stored cell by cell and the number of cells changes, the job takes the way over the
// model's own items (FusedTables); all other tensors are box to box. Rows of the vocabulary beyond those of the
// source are zeros (vocab_change.h).
#include "convert/plan/reshard/reshard.h"

#include <algorithm>

#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/fsdp_plan.h"
#include "convert/keys/fsdp_run.h"
#include "convert/keys/key_table.h"
#include "convert/keys/main_type.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/open.h"
#include "convert/plan/iteration.h"
#include "convert/plan/reshard/objects.h"
#include "convert/plan/reshard/plain.h"
#include "convert/plan/reshard/state_dict_objects.h"
#include "convert/plan/reshard/unknown.h"
#include "convert/plan/setting_identity.h"
#include "convert/plan/target.h"
#include "convert/source/checkpoint.h"
#include "convert/source/damage.h"
#include "convert/source/listed_parameters.h"
#include "convert/source/reshard_source.h"
#include "convert/source/vocab_change.h"
#include "convert/views/numbered_states.h"
#include "convert/views/rank_states.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/dcp/write/paths.h"
#include "io/store/store.h"
#include "mappings/fsdp/layout.h"
#include "mappings/key_split.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// The source, the target's key table and the lookups of the planning steps. A part of the target.
class Resharding {
 public:
  Resharding(const CheckpointModel& checkpoint, const ReshardOptions& options);

  void match_states();
  void carry_tensors(DcpLayout& layout) const;
  void store_as_source(std::vector<ModelParameter>& parameters) const;
  std::vector<i32> source_of(const DcpLayout& layout) const;
  FusedTables fused_tensors(const FsdpPlan& plan, std::span<const i32> source) const;
  std::string_view rule_of(const FusedTables& fused, i64 tensor) const;
  std::vector<bool> resized_tensors(const FsdpPlan& plan, std::span<const i32> source) const;
  ProofInput proof(const DcpLayout& layout) const;
  ProofInput::LeftOut left_out(i64 tensor) const;

  const ReshardSource& from() const { return source_; }
  const Store& source() const { return source_.store(); }
  const CheckpointModel& model() const { return source_.model(); }
  const KeyTable& target_keys() const { return *target_keys_; }
  // The shape that the source has for a key of the target: other rows, if those of the vocabulary change.
  const Shape& stored_shape(i32 key) const {
    const CheckpointKey& target = target_keys()[key];
    i32 own = model().keys().find(target.name);
    return own < 0 ? target.shape : model().keys()[own].shape;
  }
  const FsdpRun& run() const { return run_; }
  const Companions& states() const { return states_; }
  bool v2() const { return options_.fsdp.saves_state_dict(); }

  Notes notes;

 private:
  void set_up_run();
  DcpName name_of_state(const StateName& state, std::string_view stored) const;
  std::optional<DType> type_of(std::string_view key) const;
  bool has_no_place(i32 tensor) const;

  const ReshardOptions options_;
  ReshardSource source_;
  std::unique_ptr<KeyTable> target_keys_;  // of fused tensors as the new grid stores them
  FsdpRun run_;
  Companions states_;
  std::vector<i32> whole_;               // tensors that are carried as they are
  NameMap<std::string, i32> tensor_of_;  // by bare_name()
  std::optional<ListedParameters> listed_;
};

// The name without wrappers, which is the same in all dialects: a tensor of the source and that of the result
// are found by it.
std::string bare_name(std::string_view name) {
  if (std::optional<std::string> key = model_key(name)) return cat("model.", *key);
  if (std::optional<StateName> state = state_name(name))
    return cat(kStateSection, state->key, name.substr(name.rfind('.')));
  return std::string(name);
}

Resharding::Resharding(const CheckpointModel& checkpoint, const ReshardOptions& options)
    : options_(options), source_(checkpoint, options.from) {
  set_up_run();
  target_keys_ =
      std::make_unique<KeyTable>(model().map(), run_.run, KeyTable::Cells{run_.grid.tp, run_.grid.etp},
                                 [&](const std::string& name) { return model().keys().find(name) >= 0; });
  source_.join_rank_states([&](std::vector<ModelParameter>& p) { store_as_source(p); });
  for (i32 t = 0; t < source().tensor_count(); t++)
    if (!source_.drops_tensor(t)) tensor_of_.emplace(bare_name(source().name(t)), t);
}

// The name that the state has in the result.
DcpName Resharding::name_of_state(const StateName& state, std::string_view stored) const {
  if (!v2()) return {std::string(stored), state.dots};
  return state_dict_state(state.key, stored.substr(stored.rfind('.') + 1));
}

// v2 saves a state dict of model and optimizer, and nothing beside it.
bool Resharding::has_no_place(i32 tensor) const {
  std::string_view name = source().name(tensor);
  return v2() && !model_key(name) && !state_name(name);
}

// Lists every state beside its key; a state that is one value for the whole parameter is copied whole, and
// under v2 shared by the ranks. Throws kCounterpart if a state has another shape than its parameter: a rank's
// local piece was saved in place of the whole.
void Resharding::match_states() {
  const Store& store = source();
  states_.resize(static_cast<std::size_t>(target_keys_->size()));
  std::vector<std::string> faults;
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::optional<StateName> state = state_name(store.name(t));
    if (!state || source_.drops_tensor(t)) continue;
    i32 key = target_keys_->find(state->key);
    std::string name(store.name(t));
    if (key < 0 && source_.is_carried(state->key)) {
      whole_.push_back(t);
    } else if (key < 0) {
      faults.push_back(cat(escaped(name), ": there is no such parameter"));
    } else if (std::ranges::equal(store.dims(t), stored_shape(key).dims())) {
      states_[key].push_back({name_of_state(*state, name), store.dtype(t)});
    } else if (store.dims(t).empty() && v2()) {
      states_[key].push_back({name_of_state(*state, name), store.dtype(t), true});
    } else if (store.dims(t).empty()) {
      whole_.push_back(t);
    } else {
      faults.push_back(cat(escaped(name), ": the parameter has ", to_string(stored_shape(key)),
                           ", the state ", dims_to_string(store.dims(t))));
    }
  }
  // As torch's optimizers list them: step, exp_avg, exp_avg_sq.
  if (v2())
    for (std::vector<Companion>& of_key : states_)
      std::ranges::sort(of_key, {}, [](const Companion& c) { return std::tuple(!c.value, c.name.text); });
  if (faults.empty()) return;
  throw Error(Code::kCounterpart, "states of the optimizer do not fit their parameters")
      .each_note(faults)
      .file(store.root())
      .help("`weights_only` leaves the states out, `rank_states` reads them from files of the ranks");
}

// Fused parameters are stored as the source has them: whole, or in parts.
void Resharding::store_as_source(std::vector<ModelParameter>& parameters) const {
  if (listed_) listed_->apply(parameters);
  options_.frozen.apply(parameters);
  options_.modules.apply(parameters);
  for (ModelParameter& p : parameters) {
    if (p.split != KeySplit::kNone && target_keys_->find(p.global_name) >= 0) p.split = KeySplit::kNone;
    KeySplit parts = rule_named(p.row->rule).parts;
    if (p.split == KeySplit::kNone && parts != KeySplit::kNone && target_keys_->find(p.global_name) < 0)
      p.split = parts;
  }
}

// Adds the tensors that no rank cuts, whole, to the last rank's file: random states, extra states of modules,
// and tensors that optimizers keep beside the states.
void Resharding::carry_tensors(DcpLayout& layout) const {
  const Store& store = source();
  i32 last = static_cast<i32>(run_.grid.world() - 1);
  auto carry = [&](i32 t, DcpName name) {
    i32 key = layout.add_key({std::move(name), store.dtype(t), store.shape(t)});
    layout.add_chunk(key, last, zero_offsets(store.dims(t).size()), store.dims(t));
  };
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::string name(store.name(t));
    std::optional<std::string> key = model_key(name);
    if (key && (name.ends_with("._extra_state") || source_.is_carried(*key)))
      carry(t, {v2() ? cat("model.", *key) : name, {kModelDot}});
    else if (!key && !state_name(name) && !source_.drops_tensor(t) && !has_no_place(t))
      carry(t, source_.named(name));
  }
  for (i32 t : whole_) carry(t, name_of_state(*state_name(store.name(t)), store.name(t)));
}

std::vector<i32> Resharding::source_of(const DcpLayout& layout) const {
  std::vector<i32> out;
  for (i32 k = 0; k < layout.key_count(); k++) {
    const std::string& name = layout.key(k).name.text;
    auto at = tensor_of_.find(bare_name(name));
    out.push_back(at != tensor_of_.end() ? at->second : model().tensor_of_key(*model_key(name)));
  }
  return out;
}

ProofInput Resharding::proof(const DcpLayout& layout) const {
  ProofInput input{side_of(source()), side_of(layout)};
  for (i32 t = 0; t < source().tensor_count(); t++)
    if (source_.drops_tensor(t) || has_no_place(t)) input.dropped.push_back(t);
  input.copies.assign(model().chunks().copies().begin(), model().chunks().copies().end());
  return input;
}

// Why a tensor of the proof's exceptions is not in the result.
ProofInput::LeftOut Resharding::left_out(i64 tensor) const {
  const i32 t = static_cast<i32>(tensor);
  if (has_no_place(t)) return {"Megatron-FSDP v2 has no place for it"};
  if (!source_.drops_tensor(t)) return {"", tied_embedding(model().store(), tensor)};
  return {source_.weights_only() ? "a state of the optimizer, where only weights are wanted"
                                 : "the files of the ranks have the states of the optimizer"};
}

// The tensors that are stored cell after cell on either side, and those that have other rows in the result.
FusedTables Resharding::fused_tensors(const FsdpPlan& plan, std::span<const i32> source) const {
  FusedTables fused{model().keys(), target_keys(), {}};
  fused.key_of.assign(static_cast<std::size_t>(this->source().tensor_count()), -1);
  for (std::size_t k = 0; k < plan.table_key.size(); k++) {
    const CheckpointKey& to = target_keys()[plan.table_key[k]];
    i32 from = model().keys().find(to.name);
    if (to.by_cell || model().keys()[from].by_cell) fused.key_of[source[k]] = from;
  }
  fused.resized = resized_tensors(plan, source);
  return fused;
}

// Tensors that are stored cell after cell go through their rule, all others are boxes that are cut anew.
std::string_view Resharding::rule_of(const FusedTables& fused, i64 tensor) const {
  i32 key = tensor < 0 ? -1 : fused.key_of[tensor];
  return key < 0 ? "" : model().keys().parameter(model().keys()[key]).row->rule;
}

// The tensors of the source of which the result has more or fewer rows: the vocabulary and its states.
std::vector<bool> Resharding::resized_tensors(const FsdpPlan& plan, std::span<const i32> source) const {
  std::vector<bool> resized(static_cast<std::size_t>(this->source().tensor_count()));
  for (std::size_t k = 0; k < plan.table_key.size(); k++) {
    const CheckpointKey& to = target_keys()[plan.table_key[k]];
    bool vocabulary = target_keys().parameter(to).row->rule == "vocab";
    if (vocabulary && stored_shape(plan.table_key[k]) != to.shape) resized[source[k]] = true;
  }
  return resized;
}

void Resharding::set_up_run() {
  run_.grid = options_.grid;
  run_.run = model().setup();
  run_.run.vocab_rows = resharded_vocab(model(), run_.grid.tp, options_.vocab, notes);
  run_.fsdp = options_.fsdp;
  refuse_groups_under_v2(run_.fsdp, run_.run);
  run_.threads = options_.threads;
  run_.dtype_rule = [&](std::string_view key) { return type_of(key); };
  if (model().translated() && !source_.weights_only() && has_numbered_states(model().on_disk()))
    notes.note(
        "states  have numbers: each group's numbers are given to its parameters in the order of the model, and "
        "every shape fits");
  if (source_.any_model()) listed_ = set_up_unknown(source_, options_, run_, notes);
}

// Types are kept, but those of v2's main weights. Of an unknown model it is not known which tensors are weights.
std::optional<DType> Resharding::type_of(std::string_view key) const {
  std::string name = *model_key(key);
  i32 t = model().tensor_of_key(name);
  if (t < 0) return std::nullopt;
  DType type = model().store().dtype(t);
  return v2() && !source_.any_model() ? main_type(model().keys(), name, type) : type;
}

// Kept names have no line: they are another mode, "reshard by key".
PlanIdentity settings_of(const ReshardOptions& options) {
  PlanIdentity text("reshard", MCKPT_VERSION);
  set_run(text, options.grid, options.fsdp, options.frozen);
  set_vocab(text, options.vocab);
  const ReshardSourceOptions& from = options.from;
  text.set("iteration", options.iteration.value_or(0)).set("weights_only", from.weights_only);
  text.set("any_model", from.checkpoint.any_model).set("fsdp_module", options.modules.text());
  text.set("rank_states", from.rank_states.has_value());
  text.set("source_tp", from.checkpoint.source_tp.value_or(0));
  text.set("source_etp", from.checkpoint.source_etp.value_or(0));
  text.set("source_ep", from.source_ep.value_or(0)).set("source_hsdp", from.source_hsdp.value_or(0));
  return text;
}

class ReshardTarget final : public Target {
 public:
  ReshardTarget(const Opened& source, const ReshardOptions& options);
  void write_frame(const FramePlace& to) const override { impl::write_frame(plan_->layout, to); }

 private:
  ReshardedObjects lay_out(const ReshardOptions& options);
  void add_notes(const Notes& of_objects);
  void add_rank_states(const Opened& source);

  Resharding r_;
  std::optional<StateDictObjects> groups_;
  std::optional<FsdpPlan> plan_;
  std::vector<i32> source_of_;  // by key of the layout: a tensor of the source
  std::optional<PlannedChunks> chunks_;
  std::optional<FusedTables> fused_;
};

ReshardTarget::ReshardTarget(const Opened& source, const ReshardOptions& options)
    : r_(*source.sharded, options) {
  add_rank_states(source);
  r_.match_states();
  options.frozen.refuse_unmatched(r_.target_keys().parameters());
  ReshardedObjects objects = lay_out(options);
  add_notes(objects.notes);
  source_of_ = r_.source_of(plan_->layout);
  chunks_.emplace(plan_->layout, source_of_);
  fused_.emplace(r_.fused_tensors(*plan_, source_of_));
  const Store& on_disk = source.on_disk();
  if (options.rank == 0) object_files = &on_disk;
  read = &r_.source();
  job = std::make_unique<ChunkJob>(reshard_job(*read, *chunks_, &*fused_, std::move(objects.records)));
  proof = r_.proof(plan_->layout);
  proof.rule = [this](i64, i64 tensor) { return r_.rule_of(*fused_, tensor); };
  proof.left_out = [this](i64 tensor) { return r_.left_out(tensor); };
  dropped_objects = objects.left_out;
  FsdpFolder::Beside others;
  others.files = files_beside(source.store(), objects.changed_files);
  others.assets = reshard_assets(r_.from());
  // The entries of torch_dist's common state are objects now.
  std::erase_if(others.files.copies, [](const SideFile& file) { return file.name == kCommonFile; });
  std::optional<i64> iteration = iteration_of_result(on_disk, options.iteration, objects.has_states, notes);
  identified.result = plan_iteration(*this, plan_->layout, options.target, iteration, std::move(others));
  identified.settings = settings_of(options), identified.source = r_.from().identity();
  set_run(*this, fsdp_format(options.fsdp), options.grid, plan_->layout);
}

ReshardedObjects ReshardTarget::lay_out(const ReshardOptions& options) {
  if (r_.v2()) groups_.emplace(r_.from(), r_.target_keys(), r_.states());
  plan_.emplace(
      r_.target_keys(), r_.run(), [&](std::vector<ModelParameter>& p) { r_.store_as_source(p); }, r_.states(),
      groups_ ? groups_->shared() : SharedObjects{});
  r_.carry_tensors(plan_->layout);
  return groups_ ? groups_->placed(r_.run().grid)
                 : reshard_objects(r_.from(), r_.run(), options.iteration, plan_->layout);
}

void ReshardTarget::add_rank_states(const Opened& source) {
  const RankStates* states = r_.from().rank_states();
  if (!states) return;
  oddities.push_back({states->root(), states->findings()});
  folders = source.folders;
  folders.push_back(states->root());
}

void ReshardTarget::add_notes(const Notes& of_objects) {
  notes.append(r_.notes);
  if (i64 parts = r_.model().on_disk().tensor_count(), whole = r_.source().tensor_count();
      r_.v2() && parts > whole)
    notes.note(cat("parts   ", counted(parts, "tensor"), " on disk are counted as ", whole,
                   ", fused parameters and their states whole"));
  notes.append(of_objects);
}

Conversion plan_known(std::unique_ptr<Store> store, const ReshardOptions& options) {
  const OpenAs how{.source = options.source, .how = opening_of(options.from)};
  return plan(open_sharded(std::move(store), how),
              [&](Opened& source) { return std::make_unique<ReshardTarget>(source, options); });
}

}  // namespace

void refuse_contradictions(const ReshardOptions& o) {
  refuse_contradictions(o.from);
  refuse_unlike_v2(o.grid, o.fsdp);
  bool v2 = o.fsdp.saves_state_dict();
  if (!o.modules.empty() && (!v2 || !o.from.checkpoint.any_model))
    throw Error(Code::kUsage, "`fsdp_module` is for `engine` v2 and models without tables")
        .help("give `any_model` and `engine` v2 too");
  if (!v2) return;
  if (o.from.keep_names)
    throw Error(Code::kUsage, "`engine` v2 gives the tensors its own names, `keep_names` keeps theirs")
        .help("leave one of them out");
  if (o.from.rank_states)
    throw Error(Code::kUsage, "states in files of the ranks are those of a run of `engine` v1")
        .help("reshard with `rank_states` first, and the result to `engine` v2");
}

Conversion plan_sharded_to_fsdp(std::unique_ptr<Store> store, const ReshardOptions& options) {
  refuse_contradictions(options);
  bool v2 = options.fsdp.saves_state_dict();
  if (is_plain_source(*store, options.from)) {
    std::vector<Finding> damage = refuse_damage(*store, parts_of(options.from), options.from.checkpoint.accept);
    if (v2)
      throw Error(Code::kUnknownFormat, "the names follow no convention, so they have no counterparts in v2")
          .file(options.source)
          .help("leave out `engine`");
    refuse_unknown_vocab(*store, options.vocab);
    return plan_plain_reshard(open_plain(std::move(store), options.source, std::move(damage)), options);
  }
  ReshardOptions how = options;
  how.from.checkpoint.whole = v2;
  return plan_known(std::move(store), how);
}

}  // namespace mckpt::impl
