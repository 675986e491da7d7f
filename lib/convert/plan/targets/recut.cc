// Groups are numbered kind by kind: first one for each key of the target, of boxes, then one for each
// parameter, of runs. Kind 0 are weights, the others states.
#include "convert/plan/targets/recut.h"

#include <algorithm>

#include "convert/dialects/torch_dist/pieces.h"
#include "convert/dialects/torch_dist/table.h"
#include "convert/jobs/chunk_job.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/left_states.h"
#include "convert/plan/result_pattern.h"
#include "convert/plan/vocab_change.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"
#include "hf/model.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// The state that is a parameter's main weights, as an optimizer names it that is not distributed, and as the
// distributed one does. Megatron-FSDP's is always distributed.
constexpr std::string_view kMain = "fp32_param", kReshardableMain = "param";

// A run with Megatron's own modules names one thing otherwise in torch_dist: the norm in front of experts.
void refuse_without_effect(const Spelling& spelling, const ModelMap& map) {
  if (spelling.usual()) return;
  const std::vector<LayerSpec>& layers = map.model().text.layers;
  auto is_usual = [](const LayerSpec& l) { return l.mixer == Mixer::kAttention; };
  auto has_experts = [](const LayerSpec& l) { return l.ffn == Ffn::kMoe; };
  std::string why;
  if (spelling.old_mtp) why = "torch_dist has one name for the layers of MTP, whatever a run calls them";
  for (std::size_t row = 0; row < other_names().size(); row++)
    if (spelling.has(static_cast<int>(row)) && other_names()[row].why == SpellingKind::kSubmoduleConv)
      why = "torch_dist has one name for a convolution, whatever a run calls it";
  if (why.empty() && std::ranges::none_of(layers, has_experts))
    why = "torch_dist has the same names for all norms, except those in front of experts";
  if (why.empty() && !std::ranges::all_of(layers, is_usual))
    why = "it is not known how Megatron's own modules save the norms of layers without plain attention";
  if (!why.empty())
    throw Error(Code::kUsage, why).found(cat("`spelling` ", to_string(spelling))).help("leave the word out");
}

}  // namespace

TorchDistRun torch_dist_run(const ToMcoreOptions& options, const ModelMap& map) {
  TorchDistRun run;
  run.grid = options.grid, run.pipeline = options.pipeline;
  run.stacked = stacks_layers(map.model(), options.layers);
  const Spelling spelling = options.spelling.value_or(Spelling{});
  refuse_without_effect(spelling, map);
  run.own_norms = !spelling.usual();
  run.threads = options.threads;
  run.dtype_rule = [rules = options.values.rules](std::string_view key) { return rules.of(key); };
  run.main_dtype = options.values.dtype;
  run.frozen_have_main = true;
  return run;
}

Recut::Recut(const CheckpointModel& source, const ToMcoreOptions& options)
    : options_(options), model_(source) {
  if (!options_.weights_only) refuse_left_states(model_);
  run_ = torch_dist_run(options_, model_.map());
  run_.run = model_.setup();
  pattern_ = result_pattern(model_, {run_.grid.pp, options_.hybrid_pattern}, run_.pipeline, notes);
  if (pattern_) run_.pipeline.pattern = &*pattern_;
  if (run_.run.groups) run_.run.groups = run_.pipeline.pattern;
  run_.run.vocab_rows = resharded_vocab(model_, run_.grid.tp, options_.values.vocab, notes);
  keys_ = std::make_unique<KeyTable>(model_.map(), run_.run, torch_dist_split);
  if (!options_.spelling && dcp_dialect(model_.on_disk()) == DcpDialect::kTorchDist)
    run_.own_norms |= has_own_norms_of_experts(model_.on_disk(), keys_->parameters(), run_.run.groups);
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

i32 Recut::groups_of_kind() const { return keys().size() + static_cast<i32>(keys().parameters().size()); }

i32 Recut::parameter_group(const ModelParameter& p) const {
  return parameter_of_.at({p.sources[0], p.expert_number});
}

// Whether the rows of the key are stored alike under the same name on both sides. `own_key`: of the target's
// table.
bool Recut::is_box(i32 own_key) const { return model_.keys().find_alike(keys()[own_key]) >= 0; }

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

// Gives every tensor of the source its kind and its key. Throws kCounterpart if a state has another shape
// than its parameter: a rank's local piece was saved in place of the whole.
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

// For each target key, the states whose group the source has.
void Recut::list_states() {
  std::map<i32, DType> stored;  // by group
  for (i32 t = 0; t < std::ssize(key_of_); t++)
    if (kind_of_[t] > 0) stored.emplace(group_of_source(t), source().dtype(t));
  if (stored.empty()) return;
  auto has = [&](std::string_view kind) { return std::ranges::find(kinds_, kind) != kinds_.end(); };
  if (!has(kMain) && !has(kReshardableMain))
    made_main_ = dcp_dialect(model_.on_disk()) == DcpDialect::kFsdpDtensor ? kReshardableMain : kMain;
  states_.resize(static_cast<std::size_t>(keys().size()));
  for (i32 k = 0; k < keys().size(); k++) {
    for (i32 kind = 1; kind < std::ssize(kinds_); kind++)
      if (auto at = stored.find(group_of(k, kind)); at != stored.end())
        states_[k].push_back({kinds_[kind], at->second});
    if (!made_main_.empty() && !states_[k].empty())
      states_[k].push_back({std::string(made_main_), DType::kF32});
  }
  if (!made_main_.empty())
    notes.note(cat("main    the main weights of the optimizer, ", made_main_, ", are made of the weights"));
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
  if (kind == made_main_) return 0;
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
    if (std::ranges::find(copies_, static_cast<i32>(t)) != copies_.end())
      return {"", tied_embedding(source(), t)};
    if (options_.weights_only && is_optimizer_key(source().name(t)))
      return {"a state of the optimizer, where only weights are wanted"};
    return {"torch_dist has no place for it"};
  };
  return input;
}

std::string Recut::state_form() const {
  if (states_.empty()) return "";
  bool reshardable =
      made_main_ == kReshardableMain || std::ranges::find(kinds_, kReshardableMain) != kinds_.end();
  return reshardable ? "fully_reshardable" : "fully_sharded_model_space";
}

}  // namespace mckpt::impl
