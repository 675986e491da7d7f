// Three lists are brought together: the parameters in the order of the model, the numbers of each group in
// the order of the group, and the shape of each number's states.
#include "convert/own/numbered_states.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/param_groups.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// "12" of "optimizer.state.12.exp_avg"; "" for any other name.
std::string_view number_of(std::string_view name) {
  if (!name.starts_with(kStateSection)) return "";
  name.remove_prefix(kStateSection.size());
  std::size_t digits = name.find_first_not_of("0123456789");
  return digits != name.npos && name[digits] == '.' ? name.substr(0, digits) : std::string_view();
}

// One matching; run() is called once.
class Matching {
 public:
  Matching(const Store& store, std::span<const ModelParameter> known) : store_(store), known_(known) {}

  NumberedStates run() {
    read_shapes();
    read_groups();
    return match_numbers(order(), groups_, shapes_, [&](std::string why) { refuse(std::move(why)); });
  }

 private:
  [[noreturn]] void refuse(std::string why) const {
    throw Error(Code::kNotHeld, "the states of the optimizer have numbers, not the names of their parameters")
        .file(store_.root())
        .note(std::move(why))
        .help("`weights_only` skips the states; or save with named states, as torch's get_state_dict does");
  }

  void read_shapes();
  void read_groups();
  std::vector<OrderedParameter> stored_order() const;
  std::vector<OrderedParameter> order() const;

  const Store& store_;
  const std::span<const ModelParameter> known_;
  NameMap<std::string, std::vector<i64>> shapes_;  // by number
  std::vector<NumberGroup> groups_;
};

// A state that is one value for the whole parameter says nothing of its shape.
void Matching::read_shapes() {
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    std::string_view number = number_of(store_.name(t));
    std::span<const i64> dims = store_.dims(t);
    if (number.empty() || dims.empty()) continue;
    auto [at, fresh] = shapes_.try_emplace(std::string(number), dims.begin(), dims.end());
    if (!fresh && !std::ranges::equal(at->second, dims))
      refuse(cat("the states of number ", number, " have two shapes: ", dims_to_string(at->second), " and ",
                 dims_to_string(dims)));
  }
}

// Groups in the order of the store; each of the states' numbers is in one of them.
void Matching::read_groups() {
  std::set<std::string> seen;
  for (ListedGroup& listed : listed_groups(store_)) {
    if (!listed.names.empty() || listed.others > 0)
      refuse(cat("group ", escaped(listed.group), " lists something else than numbers"));
    NumberGroup group{std::move(listed.group), {}};
    for (i64 n : listed.numbers) {
      group.numbers.push_back(cat(n));
      if (!seen.insert(group.numbers.back()).second) refuse(cat("number ", n, " is listed twice"));
    }
    groups_.push_back(std::move(group));
  }
  if (groups_.empty()) refuse("no group lists the numbers: there is no optimizer.param_groups.0.params");
  for (const auto& [number, dims] : shapes_)
    if (!seen.contains(number)) refuse(cat("no group lists number ", number));
}

// The tensors of the model in the order in which they were saved; empty if .metadata does not say it.
std::vector<OrderedParameter> Matching::stored_order() const {
  NameMap<std::string, i64> tensors;
  for (i64 t = 0; t < store_.tensor_count(); t++)
    if (std::optional<std::string> key = model_key(store_.name(t)); key && is_castable(store_.dtype(t)))
      tensors.emplace(std::string(store_.name(t)), t);
  std::vector<OrderedParameter> out;
  for (std::string_view name : dcp_saved_order(store_))
    if (auto at = tensors.find(std::string(name)); at != tensors.end()) {
      std::span<const i64> dims = store_.dims(at->second);
      out.push_back({*model_key(name), {dims.begin(), dims.end()}});
    }
  return out;
}

std::vector<OrderedParameter> Matching::order() const {
  std::vector<OrderedParameter> stored = stored_order();
  if (known_.empty()) {
    if (stored.empty())
      refuse("the order of the model's parameters is not known: .metadata has no planner_data");
    return stored;
  }
  std::vector<OrderedParameter> out;
  NameSet<std::string> names;
  for (const ModelParameter& p : known_) {
    if (p.buffer()) continue;
    std::span<const i64> dims = p.shape().dims();
    out.push_back({p.global_name, {dims.begin(), dims.end()}});
    names.insert(p.global_name);
  }
  std::erase_if(stored, [&](const OrderedParameter& p) { return !names.contains(p.key); });
  auto same = [](const OrderedParameter& a, const OrderedParameter& b) { return a.key == b.key; };
  if (!stored.empty() && !std::ranges::equal(stored, out, same))
    refuse(cat("the tensors were not saved in the order of the model: ranks hold different parameters, or ",
               "parameters are stored in parts"));
  return out;
}

}  // namespace

bool has_numbered_states(const Store& store) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (!number_of(store.name(t)).empty()) return true;
  return false;
}

NumberedStates numbered_states(const Store& store, std::span<const ModelParameter> known) {
  return Matching(store, known).run();
}

}  // namespace mckpt::impl
