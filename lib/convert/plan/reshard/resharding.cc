// Lookups of a resharding. A tensor of the source and its tensor of the result are found by the name that
// both dialects have without their wrappers.
#include "convert/plan/reshard/resharding.h"

#include <algorithm>
#include <tuple>

#include "convert/keys/main_type.h"
#include "convert/keys/stored_chunks.h"
#include "convert/own/numbered_states.h"
#include "convert/plan/reshard/unknown.h"
#include "convert/plan/result_pattern.h"
#include "convert/plan/vocab_change.h"
#include "core/base/error.h"
#include "hf/model.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/paths.h"
#include "io/store/store.h"
#include "mappings/fsdp/layout.h"
#include "mappings/key_split.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// The name without wrappers, which is the same in all dialects: a tensor of the source and its tensor of the
// result are found by it.
std::string bare_name(std::string_view name) {
  if (std::optional<std::string> key = model_key(name)) return cat("model.", *key);
  if (std::optional<StateName> state = state_name(name))
    return cat(kStateSection, state->key, name.substr(name.rfind('.')));
  return std::string(name);
}

}  // namespace

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
  if (!source_.any_model()) pattern_ = result_pattern(model(), {}, {}, notes);
  if (run_.run.groups && pattern_) run_.run.groups = &*pattern_;
  run_.run.vocab_rows = resharded_vocab(model(), run_.grid.tp, options_.vocab, notes);
  run_.fsdp = options_.fsdp;
  run_.threads = options_.threads;
  run_.dtype_rule = [&](std::string_view key) { return type_of(key); };
  if (model().of_other_form() && !source_.weights_only() && has_numbered_states(model().on_disk()))
    notes.note(
        "states  have numbers: each group's numbers are given to its parameters in the order of the model, and every shape fits");
  if (source_.any_model()) listed_ = set_up_unknown(source_, options_, run_, notes);
}

// Types are kept, except the types of main weights under v2 and of a run in 8 bits. For an unknown model it
// is not known which tensors are weights.
std::optional<DType> Resharding::type_of(std::string_view key) const {
  std::string name = *model_key(key);
  i32 t = model().tensor_of_key(name);
  if (t < 0) return std::nullopt;
  DType type = model().store().dtype(t);
  const bool saves_main = v2() || run_.fsdp.fp8 != Fp8Recipe::kNone;
  return saves_main && !source_.any_model() ? main_type(model().keys(), name, type) : type;
}

}  // namespace mckpt::impl
