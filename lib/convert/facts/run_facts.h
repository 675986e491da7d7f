// RunFacts: everything that a training run saved beside its tensors, without a format. The reader of the
// source's dialect fills it and the writer of the result's dialect writes it; neither knows the other's
// objects:
//
//   kind         of a parameter    fsdp_dtensor, an object each              torch_dist, entries of common.pt
//   kArgs                          args                                      args
//   kVersion                       checkpoint_version                        checkpoint_version
//   kIteration                     iteration                                 iteration
//   kCounter                       num_floating_point_operations_so_far      the same
//   kSchedule                      opt_param_scheduler.max_lr                opt_param_scheduler {max_lr}
//   kOption      yes               optimizer.param_to_group_meta.<param>.lr  optimizer {param_groups [{lr}]}
//   kGroup                         optimizer.param_groups.0.lr (of v2)       no place
//   kOther                         rng_state.0.0                             no place
//
// Facts are in the order in which the run saved them. A fact is a pickle, or an object of the source that is
// read only where its value is needed: most objects of a resharding are copied as they are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/jobs/carried_record.h"
#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "core/base/notes.h"

namespace mckpt::impl {

class PickleValue;
class Store;
struct MegatronArgs;
struct Object;

enum class FactKind : u8 { kArgs, kVersion, kIteration, kCounter, kSchedule, kOption, kGroup, kOther };

// One value.
struct RunFact {
  FactKind kind = FactKind::kOther;
  std::string name{};       // "max_lr", "lr", "0.lr" of a group; the whole name of kOther
  std::string parameter{};  // of kOption: in the whole model
  i64 wrappers = 3;         // of kOption: "module." is so many times in front of the parameter
  std::string pickle{};     // protocol 2; "": the value is in `object`
  i64 object = -1;          // of RunFacts::store
};

// The name of the fact: of its object where each fact is one, and in messages.
std::string name_of(const RunFact& fact);
// The fact whose name that is, without a value.
RunFact fact_named(std::string_view name);
// Whether RunFacts::add_entry() has facts for an entry of that name.
bool is_entry_of_facts(std::string_view name);
// Whether the fact is lost without the states of the optimizer.
bool is_of_optimizer(const RunFact& fact);

struct RunFacts {
  std::vector<RunFact> all{};
  const Store* store = nullptr;  // has the objects of facts; outlives this. Null: all facts are pickles
  // Groups of an optimizer whose parameters are not known, as torch_dist has them; null: there are none.
  std::shared_ptr<const PickleValue> groups{};
  // Entries of the source that no fact holds, as messages name them: "common_state.x", "13 _extra_state
  // objects".
  std::vector<std::string> hidden{};
  i64 hidden_objects = 0;

  void add(FactKind kind, std::string pickle, std::string name = "") {
    all.push_back({.kind = kind, .name = std::move(name), .pickle = std::move(pickle)});
  }
  // Adds the facts that an entry of a dict of Megatron's becomes: "opt_param_scheduler" is one of each field.
  // False if no fact is for the entry. Throws for a value with tensors in it, or leaves it out.
  bool add_entry(std::string_view name, PickleValue value, bool leave_tensors = false);
  // Adds the options of a parameter's group. Whether a group holds experts follows from the parameter, so
  // that all facts say False of it. `step`: the pickled count of steps, where the group may lack it; "": it
  // is not known.
  void add_options(const std::string& parameter, PickleValue group, const std::string& step);
  // The options of each parameter, by its usual name, in the order of the facts.
  NameMap<std::string, std::vector<const RunFact*>> options() const;
  // The first fact of that kind; null: there is none.
  const RunFact* find(FactKind kind) const;
  bool has(FactKind kind) const { return find(kind) != nullptr; }
  // Null for a fact that is a pickle.
  const Object* object(const RunFact& fact) const;
  // Throws what reading an object throws; object_pickle() has the cases.
  std::string pickle(const RunFact& fact) const;
  // Null if the format of the object has no values.
  std::shared_ptr<const PickleValue> value(const RunFact& fact) const;
  // The iteration of the run, above 0: Megatron loads no checkpoint from 0.
  std::optional<i64> iteration() const;
};

// The objects of a store, each one fact: fsdp_dtensor, state dicts, and what has no dialect.
RunFacts facts_of_objects(const Store& store);
// The facts of a model that no run has trained, as a conversion writes them: args, version, iteration.
RunFacts facts_of_model(const MegatronArgs& args);
// Both; a fact that both have is the first one's. pre: at most one of the two has objects.
RunFacts joined(RunFacts first, RunFacts others);

// A warning where options are lost, because groups do not say their parameters; else "".
std::string lost_options(const RunFacts& facts);

// The work that writing facts leaves to the planner: records that become tasks of the job, and notes.
struct WrittenFacts {
  std::vector<CarriedRecord> records{};
  i64 left_out = 0;  // objects of the source that the result does not have
  Notes notes{};
};

}  // namespace mckpt::impl
