// Plans a torch_dist checkpoint. The target is the same for every source: a key table of torch_dist, and the boxes of
// a grid under its keys (TorchDistPlan). The source is either the tensors of a Hugging Face model, from which the
// boxes are gathered along the runs of the table, or the keys of another checkpoint:
//
//   the same rows on both sides     box to box          linear_qkv.weight, embeddings, parts of a gated delta net
//   other keys for the same rows    run to run          weight_w, weight_v  -->  weight; mixer.in_proj.weight  -->  .z
//
// States of the optimizer are copied as their parameters are. A run asks for fp32 copies of its parameters too, the
// main weights: where the source has none, they are made of its weights.
#include "convert/plan/to_mcore.h"

#include <algorithm>
#include <map>

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/keys/fsdp_run.h"
#include "convert/keys/key_table.h"
#include "convert/objects/common_state.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/plan/iteration.h"
#include "convert/plan/mcore_objects.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/reshard/vocab_change.h"
#include "convert/plan/setting_identity.h"
#include "convert/source/checkpoint.h"
#include "convert/source/choice.h"
#include "convert/source/hf_weights.h"
#include "convert/source/identity.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/assets.h"
#include "hf/model.h"
#include "io/copy/read_sums.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/file/folder.h"
#include "io/output/manifest.h"
#include "io/output/plan_identity.h"
#include "io/store/store.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMarkFile = "metadata.json";
// The state that is a parameter's main weights, and the kinds of states that Megatron's two ways of saving have.
constexpr std::string_view kMain = "fp32_param", kReshardableMain = "param", kStep = "step";

TorchDistRun run_of(const ToMcoreOptions& options, const ModelMap& map) {
  TorchDistRun run;
  run.grid = options.grid;
  run.stacked = stacks_layers(map.model(), options.layers);
  run.threads = options.threads;
  run.dtype_rule = [rules = options.values.rules](std::string_view key) { return rules.of(key); };
  run.main_dtype = options.values.dtype;
  run.frozen_have_main = true;
  return run;
}

void refuse_unmatched_rules(const ToMcoreOptions& options, const DcpLayout& layout) {
  options.values.rules.refuse_unmatched(layout.key_count(), [&](i64 k) -> std::string_view {
    return layout.key(static_cast<i32>(k)).name.text;
  });
}

FsdpFolder::Beside beside_of(std::string common, const HfModel& model, const std::string& assets,
                             const OpenOptions& opening) {
  FsdpFolder::Beside beside;
  beside.files.texts.emplace(kCommonFile, std::move(common));
  beside.files.texts.emplace(kMarkFile, torch_dist_mark());
  beside.assets = plan_assets(assets,
                              tensor_table_json(model.map->sources(), model.expert_layout, model.map_text,
                                                original_files(model)),
                              opening);
  return beside;
}

std::string identity_of(const ToMcoreOptions& options, const HfModel& model, const Store& source,
                        const std::string& metadata, const FsdpFolder::Beside& beside) {
  PlanIdentity text("to-mcore", MCKPT_VERSION);
  set_run(text, options.grid, {}, {});
  set_values(text, options.values);
  text.set("iteration", options.iteration.value_or(0)).set("weights_only", options.weights_only);
  text.set("layers", static_cast<i64>(options.layers));
  text.set("source_tp", options.checkpoint.source_tp.value_or(0));
  text.set("source_etp", options.checkpoint.source_etp.value_or(0));
  text.add(kSourceFiles, source_identity(source)).add(kBesideFiles, beside.identity());
  return text.add(kMapping, mapping_identity(model)).add(kResult, metadata).text();
}

void finish(Conversion& c, const ToMcoreOptions& options, const TorchDistRun& run, const TorchDistPlan& plan,
            const KeyTable& keys, const HfModel& model, FsdpFolder::Beside beside, std::optional<i64> iteration) {
  c.opening = options.checkpoint.model.files;
  c.proof.rule = [&keys, &plan](i64 target, i64) -> std::string_view {
    return keys.parameter(keys[plan.table_key[plan.first_chunk[target]]]).row->rule;
  };
  std::string metadata = plan_iteration(c, plan.layout, options.target, iteration, beside);
  c.identity = identity_of(options, model, *c.store, metadata, beside);
  note_run(c, options.grid, plan.layout);
  c.details.note(cat("layers  ", run.stacked ? "equal layers are one tensor" : "each layer has tensors of its own"));
}

Conversion plan_of_hf(const ToMcoreOptions& options) {
  Conversion c;
  auto& model = c.parts.make<HfModel>(open_hf_weights(options.source, options.checkpoint.model));
  c.notes.append(notes_of(model));
  if (options.rank == 0) refuse_unlike_copies(model, options.threads);
  const ModelMap& map = *model.map;
  auto& run = c.parts.make<TorchDistRun>(run_of(options, map));
  run.run = {vocab_rows(map.model(), map.family(), run.grid.tp, options.values.vocab),
             options.values.params_dtype.of(map.model())};
  if (std::string text = padding_note(map.model(), run.run, run.grid.tp); !text.empty()) c.notes.note(text);
  if (std::string text = vocab_run_note(map.model(), map.family(), run.run, run.grid.tp); !text.empty())
    c.details.note(text);
  auto& keys = c.parts.make<KeyTable>(map, run.run, KeyTable::TorchDist{});
  auto& plan = c.parts.make<TorchDistPlan>(keys, run);
  refuse_unmatched_rules(options, plan.layout);
  auto& chunks = c.parts.make<TorchDistChunks>(plan);
  if (has_manifest(options.source)) c.sums = std::make_unique<ReadSums>();
  c.job = std::make_unique<ChunkJob>(import_job(*model.store, keys, chunks));
  c.sources = {options.source};
  c.store = model.store.get();
  c.proof = import_proof(*model.store, map, plan.layout);
  std::string common = mcore_objects(model, {run, options.iteration.value_or(0)}).common;
  finish(c, options, run, plan, keys, model,
         beside_of(std::move(common), model, options.source, options.checkpoint.model.files), options.iteration);
  return c;
}

// A sharded checkpoint as the source. A part of the conversion.
class Recut {
 public:
  Recut(std::unique_ptr<Store> source, const ToMcoreOptions& options);

  void plan();
  ChunkJob job();
  ProofInput proof() const;
  std::string state_form() const;

  const CheckpointModel& model() const { return model_; }
  const Store& source() const { return model_.store(); }
  const TorchDistRun& run() const { return run_; }
  const KeyTable& keys() const { return *keys_; }
  const TorchDistPlan& layout() const { return *plan_; }

  Notes notes;

 private:
  static CheckpointOptions opening(const ToMcoreOptions& options);
  void refuse_other_layers() const;
  void type_as_source(std::vector<ModelParameter>& parameters) const;
  void match_tensors();
  void list_states();
  i32 kind_named(std::string_view kind);
  i32 kind_of_target(i32 layout_key) const;
  i32 group_of_source(i32 tensor) const;
  i32 groups_of_kind() const { return keys().size() + static_cast<i32>(keys().parameters().size()); }
  bool is_box(i32 own_key) const;
  i32 group_of(i32 own_key, i32 kind) const;
  i32 parameter_group(const ModelParameter& p) const;

  const ToMcoreOptions options_;
  CheckpointModel model_;
  TorchDistRun run_;
  std::unique_ptr<KeyTable> keys_;
  std::map<std::pair<i32, i64>, i32> parameter_of_;  // of keys_, by first tensor and expert
  std::vector<std::optional<DType>> types_;          // by parameter of keys_, as the source stores it
  std::vector<std::string> kinds_{""};               // of states; 0: weights
  std::vector<i32> kind_of_, key_of_;  // by tensor of the source, its kind and key of its table; -1: left out
  std::vector<i32> copies_;            // tensors of the source that repeat another one
  TorchDistStates states_;
  bool main_of_weights_ = false;
  std::unique_ptr<TorchDistPlan> plan_;
  std::unique_ptr<TorchDistChunks> chunks_;
  std::vector<i32> from_meaning_, to_meaning_;
  std::unique_ptr<ListedChunks> from_;
};

CheckpointOptions Recut::opening(const ToMcoreOptions& options) {
  CheckpointOptions out = options.checkpoint;
  out.parts = options.weights_only ? NamesOf::kModel : NamesOf::kAll;
  out.renamed = out.keep_layers = true;
  return out;
}

Recut::Recut(std::unique_ptr<Store> source, const ToMcoreOptions& options)
    : options_(options), model_(open_checkpoint(std::move(source), opening(options))) {
  refuse_other_layers();
  run_ = run_of(options_, model_.map());
  run_.run = model_.setup();
  run_.run.vocab_rows = resharded_vocab(model_, run_.grid.tp, options_.values.vocab, notes);
  keys_ = std::make_unique<KeyTable>(model_.map(), run_.run, KeyTable::TorchDist{});
  for (i32 p = 0; p < static_cast<i32>(keys_->parameters().size()); p++) {
    const ModelParameter& of = keys_->parameters()[p];
    parameter_of_.try_emplace({of.sources[0], of.expert_number}, p);
  }
  types_.resize(keys_->parameters().size());
  for (i64 c = 0; c < model_.chunks().size(); c++) {
    const ModelParameter& of = model_.keys().parameter(model_.keys()[model_.chunks().key(c)]);
    if (auto at = parameter_of_.find({of.sources[0], of.expert_number}); at != parameter_of_.end())
      types_[at->second] = model_.chunks().dtype(c);
  }
  run_.adjust = [this](std::vector<ModelParameter>& parameters) { type_as_source(parameters); };
}

void Recut::refuse_other_layers() const {
  const bool unknown = model_.model().plain != nullptr;
  if (!unknown && !model_.setup().groups) return;
  throw Error(Code::kUnknownFormat, unknown ? "no table has the names of this checkpoint's layers"
                                            : "the layers of the checkpoint are in groups")
      .file(model_.store().root())
      .expected("the layers of the model, one by one")
      .help(unknown ? "name the folder of the model with `assets`"
                    : "mckpt convert ungroup   takes the groups out; mckpt convert group puts them back");
}

i32 Recut::parameter_group(const ModelParameter& p) const {
  return parameter_of_.at({p.sources[0], p.expert_number});
}

// Whether the rows of the key are stored alike under the same name on both sides. `own_key`: of the target's table.
bool Recut::is_box(i32 own_key) const {
  i32 from = model_.keys().find(keys()[own_key].name);
  return from >= 0 && !model_.keys()[from].by_cell;
}

i32 Recut::group_of(i32 own_key, i32 kind) const {
  i32 group = is_box(own_key) ? own_key : keys().size() + parameter_group(keys().parameter(keys()[own_key]));
  return kind * groups_of_kind() + group;
}

// Parameters have the types in which the source stores them.
void Recut::type_as_source(std::vector<ModelParameter>& parameters) const {
  for (ModelParameter& p : parameters)
    if (auto at = parameter_of_.find({p.sources[0], p.expert_number}); at != parameter_of_.end())
      if (std::optional<DType> type = types_[at->second]) p.dtype = *type;
}

// Gives every tensor of the source its kind and its key. Throws kCounterpart if a state has another shape than its
// parameter: a rank's local piece was saved in place of the whole.
void Recut::match_tensors() {
  const Store& store = source();
  const KeyTable& from = model_.keys();
  kind_of_.assign(static_cast<std::size_t>(store.tensor_count()), -1);
  key_of_ = kind_of_;
  copies_ = model_.chunks().copies();
  std::vector<std::string> faults;
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::string_view name = store.name(t);
    if (std::optional<std::string> key = model_key(name)) {
      if (std::ranges::find(copies_, t) != copies_.end()) continue;
      key_of_[t] = from.find(*key);
      if (key_of_[t] >= 0) kind_of_[t] = 0;
      continue;
    }
    std::optional<StateName> state = options_.weights_only ? std::nullopt : state_name(name);
    // The step is an option of the groups.
    if (!state || store.dims(t).empty()) continue;
    i32 key = from.find(state->key);
    if (key < 0)
      faults.push_back(cat(escaped(name), ": there is no such parameter"));
    else if (!std::ranges::equal(store.dims(t), from[key].shape.dims()))
      faults.push_back(cat(escaped(name), ": the parameter has ", to_string(from[key].shape), ", the state ",
                           dims_to_string(store.dims(t))));
    else
      key_of_[t] = key, kind_of_[t] = kind_named(name.substr(name.rfind('.') + 1));
  }
  if (faults.empty()) return;
  throw Error(Code::kCounterpart, "states of the optimizer do not fit their parameters")
      .each_note(faults)
      .file(store.root())
      .help("`weights_only` leaves the states out");
}

i32 Recut::kind_named(std::string_view kind) {
  auto at = std::ranges::find(kinds_, kind);
  if (at == kinds_.end()) at = kinds_.insert(kinds_.end(), std::string(kind));
  return static_cast<i32>(at - kinds_.begin());
}

// The states of each key of the target: those of which the source has the group.
void Recut::list_states() {
  std::map<i32, DType> stored;  // by group
  for (i32 t = 0; t < std::ssize(key_of_); t++)
    if (kind_of_[t] > 0) stored.emplace(group_of_source(t), source().dtype(t));
  if (stored.empty()) return;
  auto has = [&](std::string_view kind) { return std::ranges::find(kinds_, kind) != kinds_.end(); };
  main_of_weights_ = !has(kMain) && !has(kReshardableMain);
  states_.resize(static_cast<std::size_t>(keys().size()));
  for (i32 k = 0; k < keys().size(); k++) {
    for (i32 kind = 1; kind < std::ssize(kinds_); kind++)
      if (auto at = stored.find(group_of(k, kind)); at != stored.end())
        states_[k].push_back({kinds_[kind], at->second});
    if (main_of_weights_ && !states_[k].empty()) states_[k].push_back({std::string(kMain), DType::kF32});
  }
  if (main_of_weights_) notes.note("main    the main weights of the optimizer, fp32_param, are made of the weights");
}

i32 Recut::group_of_source(i32 tensor) const {
  i32 key = key_of_[tensor], kind = kind_of_[tensor];
  if (key < 0 || kind < 0) return -1;
  const CheckpointKey& k = model_.keys()[key];
  i32 own = k.by_cell ? -1 : keys().find(k.name);
  return own >= 0 ? group_of(own, kind)
                  : kind * groups_of_kind() + keys().size() + parameter_group(model_.keys().parameter(k));
}

void Recut::plan() {
  match_tensors();
  list_states();
  plan_ = std::make_unique<TorchDistPlan>(keys(), run_, states_);
  refuse_unmatched_rules(options_, plan_->layout);
  chunks_ = std::make_unique<TorchDistChunks>(*plan_);
}

ChunkJob Recut::job() {
  const i32 tensors = static_cast<i32>(source().tensor_count());
  std::vector<std::pair<i32, i32>> wanted;
  from_meaning_.assign(static_cast<std::size_t>(tensors), -1);
  for (i32 t = 0; t < tensors; t++) {
    if (group_of_source(t) < 0) continue;
    wanted.emplace_back(t, t);
    const CheckpointKey& k = model_.keys()[key_of_[t]];
    if (k.by_cell || keys().find(k.name) < 0) from_meaning_[t] = key_of_[t];
  }
  for (i32 k = 0; k < keys().size(); k++) to_meaning_.push_back(is_box(k) ? -1 : k);
  from_ = std::make_unique<ListedChunks>(source(), wanted);
  GroupedSide from{{*from_, &model_.keys(), from_meaning_}, {}}, to{{*chunks_, &keys(), to_meaning_}, {}};
  for (i64 c = 0; c < from_->size(); c++) from.group.push_back(group_of_source(from_->key(c)));
  for (i64 c = 0; c < chunks_->size(); c++)
    to.group.push_back(group_of(chunks_->key(c), kind_of_target(chunks_->tensor(c))));
  const i64 groups = std::ssize(kinds_) * groups_of_kind();
  std::vector<bool> resized(static_cast<std::size_t>(groups));
  for (i32 k = 0; k < keys().size(); k++)
    if (is_box(k) && model_.keys()[model_.keys().find(keys()[k].name)].shape != keys()[k].shape)
      for (i32 kind = 0; kind < std::ssize(kinds_); kind++) resized[group_of(k, kind)] = true;
  return keyed_job(source(), from, to, std::move(resized), groups);
}

// Which kind of the source a tensor of the target is made of.
i32 Recut::kind_of_target(i32 layout_key) const {
  i32 state = plan_->state[layout_key];
  if (state < 0) return 0;
  const std::string& kind = states_[plan_->table_key[plan_->first_chunk[layout_key]]][state].kind;
  if (main_of_weights_ && kind == kMain) return 0;
  return static_cast<i32>(std::ranges::find(kinds_, kind) - kinds_.begin());
}

ProofInput Recut::proof() const {
  ProofInput input{side_of(source()), side_of(plan_->layout)};
  for (i32 t = 0; t < std::ssize(key_of_); t++) {
    bool copy = std::ranges::find(copies_, t) != copies_.end();
    if (copy)
      input.copies.push_back(t);
    else if (group_of_source(t) < 0)
      input.dropped.push_back(t);
  }
  for (i32 k = 0; k < plan_->layout.key_count(); k++)
    if (plan_->state[k] >= 0 && kind_of_target(k) == 0) input.tied.push_back(k);
  input.left_out = [this](i64 t) -> ProofInput::LeftOut {
    if (std::ranges::find(copies_, static_cast<i32>(t)) != copies_.end()) return {"", tied_embedding(source(), t)};
    if (options_.weights_only && is_optimizer_key(source().name(t)))
      return {"a state of the optimizer, where only weights are wanted"};
    return {"torch_dist has no place for it"};
  };
  return input;
}

std::string Recut::state_form() const {
  if (states_.empty()) return "";
  bool reshardable = std::ranges::find(kinds_, kReshardableMain) != kinds_.end();
  return reshardable ? "fully_reshardable" : "fully_sharded_model_space";
}

Conversion plan_of_checkpoint(std::unique_ptr<Store> source, const ToMcoreOptions& options) {
  if (options.values.params_dtype.kind != ParamsDtype::kSource)
    throw Error(Code::kUsage, "`params_dtype` is for a Hugging Face model")
        .help("`dtype` gives the type of the weights");
  Conversion c;
  auto& r = c.parts.make<Recut>(std::move(source), options);
  c.oddities.push_back({r.model().store().root(), r.model().oddities()});
  note_choice(options.source, r.model().store(), c.notes);
  r.plan();
  c.sums = std::make_unique<ReadSums>();
  c.job = std::make_unique<ChunkJob>(r.job());
  c.sources = {r.model().store().root(), r.model().assets_path()};
  c.store = &r.source();
  c.proof = r.proof();
  std::optional<i64> iteration = options.iteration ? options.iteration : iteration_of(r.source().root());
  McoreObjects objects = mcore_objects(r.model(), r.keys(), {r.run(), iteration.value_or(0), r.state_form()});
  c.notes.append(r.notes);
  c.notes.append(objects.notes);
  c.dropped_objects = objects.left_out;
  const HfModel& model = r.model().model();
  finish(c, options, r.run(), r.layout(), r.keys(), model,
         beside_of(std::move(objects.common), model, r.model().assets_path(), options.checkpoint.model.files),
         iteration);
  return c;
}

}  // namespace

Conversion plan_to_mcore(const ToMcoreOptions& options) {
  std::unique_ptr<Store> source = open_store(options.source, options.checkpoint.model.files);
  if (format_family(source->format()) == FormatFamily::kSafetensors) return plan_of_hf(options);
  return plan_of_checkpoint(std::move(source), options);
}

}  // namespace mckpt::impl
