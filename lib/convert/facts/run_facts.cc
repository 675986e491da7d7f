// Two short tables decide which fact a name is: facts that are whole, and facts of which a dict has many,
// with the number of nested levels. Keys of a dict that are not texts are skipped.
#include "convert/facts/run_facts.h"

#include <algorithm>

#include "convert/facts/megatron_args.h"
#include "convert/facts/param_groups.h"
#include "convert/facts/scalar.h"
#include "convert/facts/source_args.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/copy.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kWrapper = "module.";

struct Whole {
  FactKind kind;
  std::string_view name;
};
constexpr Whole kWhole[] = {{FactKind::kArgs, "args"},
                            {FactKind::kVersion, "checkpoint_version"},
                            {FactKind::kIteration, "iteration"},
                            {FactKind::kCounter, "num_floating_point_operations_so_far"}};

constexpr std::string_view kSchedule = "opt_param_scheduler.";
struct Nested {
  std::string_view front;
  int levels;  // of nested dicts that are taken apart
};
constexpr Nested kNested[] = {{kSchedule, 1}, {kGroupMetaSection, 2}};

// The levels of an entry: 0 for one that is a fact itself; -1: no fact is for it.
int levels_of(std::string_view name) {
  if (std::ranges::find(kWhole, name, &Whole::name) != std::end(kWhole)) return 0;
  auto nested = std::ranges::find(kNested, cat(name, "."), &Nested::front);
  return nested == std::end(kNested) ? -1 : nested->levels;
}

// Walks down `levels` nested dicts and joins their keys with dots.
void add_fields(RunFacts& to, const std::string& name, PickleValue value, int levels, bool leave_tensors) {
  if (levels > 0) {
    for (PickleEntry e : value.entries())
      if (e.key.is(PickleValue::Kind::kText))
        add_fields(to, cat(name, ".", e.key.text()), e.value, levels - 1, leave_tensors);
    return;
  }
  RunFact fact = fact_named(name);
  try {
    fact.pickle = copy_pickle(value);
  } catch (const Error&) {
    if (!leave_tensors) throw;
    return;
  }
  to.all.push_back(std::move(fact));
}

}  // namespace

std::string name_of(const RunFact& f) {
  switch (f.kind) {
    case FactKind::kSchedule:
      return cat(kSchedule, f.name);
    case FactKind::kGroup:
      return cat(kGroupListSection, f.name);
    case FactKind::kOption: {
      std::string out(kGroupMetaSection);
      for (i64 w = 0; w < f.wrappers; w++) out += kWrapper;
      return cat(out, f.parameter, ".", f.name);
    }
    case FactKind::kOther:
      return f.name;
    default:
      return std::string(std::ranges::find(kWhole, f.kind, &Whole::kind)->name);
  }
}

RunFact fact_named(std::string_view name) {
  if (auto whole = std::ranges::find(kWhole, name, &Whole::name); whole != std::end(kWhole))
    return {.kind = whole->kind};
  auto behind = [&](std::string_view front) { return std::string(name.substr(front.size())); };
  if (name.starts_with(kSchedule)) return {.kind = FactKind::kSchedule, .name = behind(kSchedule)};
  if (name.starts_with(kGroupListSection))
    return {.kind = FactKind::kGroup, .name = behind(kGroupListSection)};
  const DcpKey key = split_key(DcpDialect::kFsdpDtensor, name);
  if (key.section != DcpKey::Section::kGroupMeta) return {.name = std::string(name)};
  const std::ptrdiff_t wrapped = key.parameter.data() - name.data() - std::ssize(kGroupMetaSection);
  return {.kind = FactKind::kOption,
          .name = std::string(key.field),
          .parameter = std::string(key.parameter),
          .wrappers = wrapped / std::ssize(kWrapper)};
}

bool is_of_optimizer(const RunFact& f) {
  return f.kind == FactKind::kOption || f.kind == FactKind::kGroup ||
         (f.kind == FactKind::kOther && is_optimizer_key(f.name));
}

bool is_entry_of_facts(std::string_view name) { return levels_of(name) >= 0; }

bool RunFacts::add_entry(std::string_view name, PickleValue value, bool leave_tensors) {
  const int levels = levels_of(name);
  if (levels >= 0) add_fields(*this, std::string(name), value, levels, leave_tensors);
  return levels >= 0;
}

void RunFacts::add_options(const std::string& parameter, PickleValue group, const std::string& step) {
  auto option = [&](std::string_view name, std::string pickled) {
    add(FactKind::kOption, std::move(pickled), std::string(name));
    all.back().parameter = parameter;
  };
  for (PickleEntry e : group.entries())
    if (e.key.is(PickleValue::Kind::kText) && e.key.text() != "params")
      option(e.key.text(), e.key.text() == kExpertGroup ? pickle_flag(false) : copy_pickle(e.value));
  if (!step.empty() && !group.find("step")) option("step", step);
}

NameMap<std::string, std::vector<const RunFact*>> RunFacts::options() const {
  NameMap<std::string, std::vector<const RunFact*>> out;
  for (const RunFact& f : all)
    if (f.kind == FactKind::kOption) out[*model_key(cat("model.", f.parameter))].push_back(&f);
  return out;
}

const RunFact* RunFacts::find(FactKind kind) const {
  auto found = std::ranges::find(all, kind, &RunFact::kind);
  return found == all.end() ? nullptr : &*found;
}

const Object* RunFacts::object(const RunFact& fact) const {
  return fact.object < 0 ? nullptr : &store->objects()[fact.object];
}

std::string RunFacts::pickle(const RunFact& fact) const {
  return fact.object < 0 ? fact.pickle : object_pickle(*store, *object(fact));
}

std::shared_ptr<const PickleValue> RunFacts::value(const RunFact& fact) const {
  if (fact.object >= 0) return store->object(fact.object);
  std::shared_ptr<const Pickle> read = Pickle::own({fact.pickle.begin(), fact.pickle.end()});
  auto root = std::make_shared<PickleValue>(read->root());
  return {root.get(), [read, root](const PickleValue*) {}};
}

std::optional<i64> RunFacts::iteration() const {
  const RunFact* said = find(FactKind::kIteration);
  std::shared_ptr<const PickleValue> number = said ? value(*said) : nullptr;
  if (!number || !number->is_int() || number->as_int() <= 0) return std::nullopt;
  return number->as_int();
}

RunFacts facts_of_objects(const Store& store) {
  RunFacts out{.store = &store};
  for (const Object& o : store.objects()) {
    out.all.push_back(fact_named(o.name));
    out.all.back().object = std::ssize(out.all) - 1;
  }
  return out;
}

RunFacts facts_of_model(const MegatronArgs& args) {
  RunFacts out;
  out.add(FactKind::kArgs, pickle_args(args));
  out.add(FactKind::kVersion, pickle_real(3.0));
  out.add(FactKind::kIteration, pickle_integer(args.iteration));
  return out;
}

RunFacts joined(RunFacts first, RunFacts others) {
  NameSet<std::string> names;
  for (const RunFact& f : first.all) names.insert(name_of(f));
  for (RunFact& f : others.all)
    if (names.insert(name_of(f)).second) first.all.push_back(std::move(f));
  if (!first.store) first.store = others.store;
  if (!first.groups) first.groups = std::move(others.groups);
  std::ranges::move(others.hidden, std::back_inserter(first.hidden));
  first.hidden_objects += others.hidden_objects;
  return first;
}

std::string lost_options(const RunFacts& facts) {
  const i64 groups = facts.groups ? std::ssize(ParamGroups(*facts.groups, nullptr).all()) : 0;
  if (groups == 0) return "";
  return cat(
      "the options of the optimizer are lost, such as lr and weight_decay of its ", counted(groups, "group"),
      ": torch_dist does not list the parameters of a group, and for some parameters not exactly one group fits");
}

}  // namespace mckpt::impl
