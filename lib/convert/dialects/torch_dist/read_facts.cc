// Megatron keeps the count of steps among the options of a group. torch's own optimizers keep it as a tensor
// of each parameter, of which a save has one for all.
#include "convert/dialects/torch_dist/read_facts.h"

#include <algorithm>
#include <optional>

#include "convert/facts/param_groups.h"
#include "convert/facts/scalar.h"
#include "core/base/text.h"
#include "io/dcp/run/args.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// The count of steps beside the options of the groups; "" if there is none, or two optimizers have two
// counts.
std::string common_step(const Store& store) {
  const auto own = std::ranges::find(store.objects(), kCommonFile, &Object::name);
  if (own == store.objects().end()) return "";
  std::unique_ptr<Store> common = open_store(file_path(store, own->file), store.opening());
  std::string step;
  for (i64 t = 0; t < common->tensor_count(); t++) {
    if (!common->name(t).starts_with("optimizer.") || !common->name(t).ends_with("state.common_step"))
      continue;
    std::string mine = pickle_scalar(*common, t);
    if (!step.empty() && step != mine) return "";
    step = std::move(mine);
  }
  return step;
}

// Whether every parameter got its options.
bool give_options(RunFacts& facts, PickleValue optimizer, const PickleValue* args,
                  std::span<const ModelParameter* const> parameters,
                  const std::function<std::string()>& step) {
  const ParamGroups groups(optimizer, args);
  std::vector<PickleValue> found;
  for (const ModelParameter* p : parameters) {
    std::optional<PickleValue> group = groups.of(group_marks(*p, args));
    if (!group) return false;
    found.push_back(*group);
  }
  if (found.empty()) return false;
  const std::string steps = step();
  for (std::size_t i = 0; i < found.size(); i++)
    facts.add_options(parameters[i]->global_name, found[i], steps);
  return true;
}

}  // namespace

RunFacts facts_of_common_state(std::shared_ptr<const PickleValue> common, const PickleValue* args,
                               std::span<const ModelParameter* const> with_states,
                               const std::function<std::string()>& step) {
  RunFacts out;
  const PickleValue* optimizer = common->find("optimizer");
  if (optimizer && !give_options(out, *optimizer, args, with_states, step))
    out.groups = std::shared_ptr<const PickleValue>(common, optimizer);
  for (PickleEntry e : common->entries())
    if (e.key.is(PickleValue::Kind::kText) && !out.add_entry(e.key.text(), e.value) &&
        e.key.text() != "optimizer")
      out.hidden.push_back(cat("common_state.", escaped(e.key.text())));
  return out;
}

std::optional<i64> torch_dist_iteration(const Store& store) {
  const std::shared_ptr<const PickleValue> common = common_state_of(store);
  const PickleValue* said = common ? common->find("iteration") : nullptr;
  if (!said || !said->is_int() || said->as_int() <= 0) return std::nullopt;
  return said->as_int();
}

RunFacts torch_dist_facts(const Store& store, std::span<const ModelParameter* const> with_states) {
  std::vector<std::string> objects;
  i64 extra = 0;
  for (const Object& o : store.objects())
    if (o.name.find("._extra_state/") != o.name.npos)
      extra++;
    else if (!is_common_state(o.name) && !is_file(store, o))
      objects.push_back(o.name);
  RunFacts out;
  const i64 count = std::ssize(objects) + extra;
  if (std::shared_ptr<const PickleValue> common = common_state_of(store)) {
    const std::shared_ptr<const PickleValue> args = with_states.empty() ? nullptr : args_of(store);
    out = facts_of_common_state(common, args.get(), with_states, [&] { return common_step(store); });
  }
  out.store = &store;
  out.hidden_objects = count;
  out.hidden.insert(out.hidden.begin(), objects.begin(), objects.end());
  if (extra > 0) out.hidden.push_back(cat(extra, " _extra_state objects"));
  return out;
}

}  // namespace mckpt::impl
