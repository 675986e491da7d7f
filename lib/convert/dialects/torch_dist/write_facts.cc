// Options of parameters are grouped by their bytes, as in write_groups.h; the groups of experts hold the
// parameters of experts. content_metadata has the fields that Megatron's own save has and that decide keys: a
// run takes them from the checkpoint before it asks for tensors.
#include "convert/dialects/torch_dist/write_facts.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "convert/facts/kept_args.h"
#include "convert/facts/param_groups.h"
#include "convert/facts/rope_args.h"
#include "convert/facts/scalar.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/dcp/write/record.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/compose.h"
#include "io/pickle/write/copy.h"
#include "io/pickle/write/writer.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// Values by name, each a whole pickle of protocol 2, in the order in which they are written.
using PickledEntries = std::vector<std::pair<std::string, std::string>>;

std::string pickle_text(std::string_view text) {
  PickleWriter w;
  w.text(text);
  return w.finish();
}

// In protocol 2, whatever the protocol of the object is.
std::string pickle_of(const RunFacts& facts, const RunFact& f) {
  if (f.object < 0) return f.pickle;
  const std::string stored = facts.pickle(f);
  return copy_pickle(Pickle({reinterpret_cast<const u8*>(stored.data()), stored.size()}, {}).root());
}

// Objects without a place are counted, and named by the fronts of their names. content_metadata of another
// torch_dist save is written anew, and not lost.
void note_left_out(const RunFacts& facts, bool has_states, WrittenFacts& out) {
  std::map<std::string, i64, std::less<>> left;
  for (const RunFact& f : facts.all) {
    const Object* o = facts.object(f);
    if (!o || is_file(*facts.store, *o) || is_common_state(o->name)) continue;
    const std::string name = name_of(f);
    if (f.kind == FactKind::kOther || (is_of_optimizer(f) && !(f.kind == FactKind::kOption && has_states)))
      left[name.substr(0, name.find('.'))]++;
  }
  std::vector<std::string> names;
  for (const auto& [front, count] : left) names.push_back(front), out.left_out += count;
  std::ranges::remove_copy(facts.hidden, std::back_inserter(names), "common_state.content_metadata");
  out.left_out += facts.hidden_objects;
  if (!names.empty()) out.notes.note(cat("torch_dist has no place for ", listed(names)));
}

// Only the norm in front of experts has a name that not all modules load.
NormNames norms_of(const TorchDistResult& result) {
  if (result.keys.map().model().moe.experts == 0) return NormNames::kOfAll;
  return result.run.own_norms ? NormNames::kOfMegatron : NormNames::kOfTransformerEngine;
}

// The args of the source with the new grid, or, if the source has no args, the args that the model's config
// gives. `said`: the iteration of the facts.
std::string args_of(const RunFacts& facts, std::optional<i64> said, const TorchDistResult& result,
                    Notes& notes) {
  const RunFact* own = facts.find(FactKind::kArgs);
  if (!own) {
    MegatronArgs made = result.made;
    note_unsaid_rope(made.map.model(), made.entries, notes);
    made.iteration = result.iteration.value_or(said.value_or(0));
    return pickle_args(made);
  }
  return kept_args(
      pickle_of(facts, *own),
      {.map = result.keys.map(),
       .grid = result.run.grid,
       .pipeline = result.run.pipeline,
       .format = ArgsFormat::kTorchDist,
       .has_states = result.has_states(),
       .vocab_rows = result.run.run.vocab_rows,
       .source_rows = result.source_rows,
       .iteration = said.value_or(-1) == result.iteration.value_or(-1) ? std::nullopt : result.iteration,
       .norms = norms_of(result),
       .pattern = result.run.pipeline.pattern ? result.run.pipeline.pattern : result.run.run.groups},
      notes);
}

using Groups = std::vector<PickledEntries>;

// The groups of the optimizers: one optimizer, or with expert parallelism a second one for experts.
std::vector<Groups> groups_of(const RunFacts& facts, const TorchDistResult& result) {
  const auto options = facts.options();
  const bool apart = result.run.grid.ep > 1 && result.keys.map().model().moe.experts > 0;
  std::vector<Groups> out(apart ? 2 : 1);
  NameSet<std::string> seen[2];
  for (i32 k = 0; k < result.keys.size(); k++) {
    const ModelParameter& p = result.keys.parameter(result.keys[k]);
    auto own = options.find(p.global_name);
    if (own == options.end()) own = options.find(result.keys[k].name);
    if (own == options.end()) continue;
    const std::size_t optimizer = apart && p.expert() ? 1 : 0;
    PickledEntries group;
    for (const RunFact* f : own->second)
      group.emplace_back(f->name,
                         f->name == kExpertGroup ? pickle_flag(optimizer == 1) : pickle_of(facts, *f));
    std::ranges::sort(group);
    if (seen[optimizer].insert(pickle_dict(group)).second) out[optimizer].push_back(std::move(group));
  }
  return out;
}

std::string optimizer_of(Groups groups, const std::string& state_form) {
  std::vector<std::string> dicts;
  for (PickledEntries& fields : groups) {
    std::erase_if(fields, [](const auto& field) { return field.first == "params"; });
    dicts.push_back(pickle_dict(fields));
  }
  const PickledEntries inner{{"param_groups", pickle_list(dicts)}};
  return pickle_dict(PickledEntries{{"optimizer", pickle_dict(inner)},
                                    {"param_state_sharding_type", pickle_text(state_form)}});
}

// Groups whose parameters are not known stay as they are.
std::string optimizers_of(const RunFacts& facts, const TorchDistResult& result) {
  if (!facts.has(FactKind::kOption)) {
    if (facts.groups) return copy_pickle(*facts.groups);
    throw Error(Code::kNotHeld,
                "the checkpoint has states of the optimizer, but not the options of its parameters")
        .file(facts.store ? facts.store->root() : "")
        .expected(cat("objects named ", kGroupMetaSection, "<parameter>.<option>"))
        .note("without them no group of a training run would find its step and its learning rate")
        .help("`weights_only` leaves the states out");
  }
  std::vector<std::string> optimizers;
  for (Groups& groups : groups_of(facts, result))
    optimizers.push_back(optimizer_of(std::move(groups), result.state_form));
  return optimizers.size() == 1 ? optimizers[0] : pickle_numbered(optimizers);
}

// How the tensors are stored: a run that loads the checkpoint lays its own out alike.
std::string content_of(const TorchDistResult& result) {
  PickledEntries fields{{"singleton_local_shards", pickle_flag(false)},
                        {"non_homogeneous_layers", pickle_flag(!result.run.stacked)}};
  if (result.has_states()) {
    fields.emplace_back("distrib_optim_sharding_type", pickle_text(result.state_form));
    fields.emplace_back("chained_optim_avoid_prefix", pickle_flag(true));
  }
  return pickle_dict(fields);
}

}  // namespace

std::string common_file(const RunFacts& facts, const TorchDistResult& result, WrittenFacts& out) {
  note_left_out(facts, result.has_states(), out);
  const RunFact *iteration = facts.find(FactKind::kIteration), *version = facts.find(FactKind::kVersion);
  std::shared_ptr<const PickleValue> number = iteration ? facts.value(*iteration) : nullptr;
  const std::optional<i64> said = number && number->is_int() ? std::optional(number->as_int()) : std::nullopt;
  PickledEntries entries{{"args", args_of(facts, said, result, out.notes)}};
  entries.emplace_back("checkpoint_version", version ? pickle_of(facts, *version) : pickle_real(3.0));
  entries.emplace_back("iteration", result.iteration || !iteration
                                        ? pickle_integer(result.iteration.value_or(0))
                                        : pickle_of(facts, *iteration));
  if (result.has_states()) entries.emplace_back("optimizer", optimizers_of(facts, result));
  PickledEntries schedule;
  for (const RunFact& f : facts.all)
    if (f.kind == FactKind::kSchedule) schedule.emplace_back(f.name, pickle_of(facts, f));
  if (!schedule.empty()) entries.emplace_back("opt_param_scheduler", pickle_dict(schedule));
  if (const RunFact* counter = facts.find(FactKind::kCounter))
    entries.emplace_back(name_of(*counter), pickle_of(facts, *counter));
  entries.emplace_back("content_metadata", content_of(result));
  return dcp_object_record(pickle_dict(entries));
}

std::string torch_dist_mark() { return R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})"; }

MegatronArgs torch_dist_args(const ModelMap& map, const RunEntries& entries, const TorchDistRun& run,
                             const std::string& state_form) {
  return {.map = map,
          .entries = entries,
          .grid = run.grid,
          .run = run.run,
          .has_states = !state_form.empty(),
          .format = ArgsFormat::kTorchDist,
          .pipeline = run.pipeline};
}

}  // namespace mckpt::impl
