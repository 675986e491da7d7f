// Groups the tensors by their dicts, and judges the dicts.
#include "convert/own/model_dict.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "hf/folder/name_words.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The last key of dicts that are a model, whatever is beside them.
constexpr std::string_view kOfModels[] = {
    "model", "module", "state_dict", "model_state_dict", "model_state", "policy.weights", "policy/weights"};
// The first choice where several dicts have such a key, and are not whole models alike.
constexpr std::string_view kFirst[] = {"model.", "app.model.", "state.model.", "policy.model."};
constexpr std::string_view kModel = "model.";
// The texts that may be in front of the model's own names inside of the dict.
constexpr std::string_view kFronts[] = {"", "module.", "_forward_module.", "model."};
// Tensors that a training program may have in another form than the model's folder: stacked, or tied.
constexpr std::string_view kOtherForms[] = {".experts.", "lm_head.weight"};

struct Dict {
  std::string front;
  std::vector<const NamedTensor*> tensors;  // directly in it
  bool of_modules = false;                  // a key is the path of a module's parameter: it has a dot
};

bool is_named(std::string_view front) {
  if (front.empty()) return false;
  front.remove_suffix(1);
  return std::ranges::any_of(
      kOfModels, [&](std::string_view key) { return front == key || front.ends_with(cat(".", key)); });
}

// The one element for which `is` holds; null if there is none, or more than one.
template <typename Is>
const Dict* only(std::span<const Dict* const> dicts, Is&& is) {
  const Dict* found = nullptr;
  for (const Dict* d : dicts) {
    if (!is(*d)) continue;
    if (found != nullptr) return nullptr;
    found = d;
  }
  return found;
}

class Choice {
 public:
  Choice(const Store& store, std::span<const NamedTensor> names, std::span<const std::string_view> dicts,
         const ExpectedTensors& expected)
      : store_(store), expected_(expected) {
    for (const NamedTensor& n : names) add(n, dicts[static_cast<std::size_t>(n.tensor)]);
    for (const Dict& d : dicts_)
      if (d.of_modules || is_named(d.front)) candidates_.push_back(&d);
  }

  ModelDict run() const {
    if (const Dict* d = chosen()) return {true, d->front, {}};
    ModelDict out;
    for (const Dict* d : candidates_) out.candidates.push_back(d->front);
    for (const Dict* d : parts_beside()) out.candidates.push_back(d->front);
    return out;
  }

 private:
  void add(const NamedTensor& n, std::string_view dict) {
    auto [at, is_new] = place_.try_emplace(std::string(dict), dicts_.size());
    if (is_new) dicts_.push_back({std::string(dict), {}});
    Dict& d = dicts_[at->second];
    std::string_view key = std::string_view(n.name).substr(dict.size());
    d.of_modules |= key.find('.') != key.npos && !is_beside_model(key);
    d.tensors.push_back(&n);
  }

  // The name comes first: beside a model that was changed (another vocabulary, a tensor less) the reference
  // that it was trained from has all tensors of the folder, and is not what is wanted.
  const Dict* chosen() const {
    if (const Dict* d = named()) return d;
    if (const Dict* d = only(candidates_, [&](const Dict& c) { return has_all_expected(c); })) return d;
    return candidates_.size() == 1 && parts_beside().empty() ? candidates_[0] : nullptr;
  }

  // The dict with the name of a model in the fewest dicts.
  const Dict* named() const {
    auto depth = [](const Dict& d) { return std::ranges::count(d.front, '.'); };
    i64 least = -1;
    for (const Dict* d : candidates_)
      if (is_named(d->front) && (least < 0 || depth(*d) < least)) least = depth(*d);
    auto is_outermost = [&](const Dict& d) { return is_named(d.front) && depth(d) == least; };
    if (const Dict* d = only(candidates_, is_outermost)) return d;
    const Dict* first = only(candidates_, [&](const Dict& d) {
      return is_outermost(d) && std::ranges::find(kFirst, d.front) != std::end(kFirst);
    });
    // Two whole models with such names: nothing says which one is meant.
    const bool two = first && std::ranges::any_of(candidates_, [&](const Dict* d) {
                       return d != first && is_outermost(*d) && are_two_models(*first, *d);
                     });
    return two ? nullptr : first;
  }

  // Whether both have all tensors of the model's folder; where that is not known, whether the other one has
  // all of the first.
  bool are_two_models(const Dict& first, const Dict& other) const {
    if (!expected_.empty()) return has_all_expected(first) && has_all_expected(other);
    NameMap<std::string, i64> has;
    for (const NamedTensor* n : other.tensors) has.emplace(name_in(other, *n), n->tensor);
    return std::ranges::all_of(first.tensors, [&](const NamedTensor* n) {
      auto at = has.find(name_in(first, *n));
      return at != has.end() && std::ranges::equal(store_.dims(n->tensor), store_.dims(at->second));
    });
  }

  static std::string name_in(const Dict& dict, const NamedTensor& n) {
    return without_wrappers(std::string_view(n.name).substr(dict.front.size()));
  }

  // The dicts beside the only one with modules that may be parts of the model too, such as a head alone.
  std::vector<const Dict*> parts_beside() const {
    std::vector<const Dict*> out;
    if (candidates_.size() != 1 || candidates_[0]->front.empty()) return out;
    for (const Dict& d : dicts_)
      if (!d.front.starts_with(candidates_[0]->front) &&
          std::ranges::any_of(d.tensors, [&](const NamedTensor* n) { return may_be_parameter(*n); }))
        out.push_back(&d);
    return out;
  }

  bool may_be_parameter(const NamedTensor& n) const {
    return is_castable(store_.dtype(n.tensor)) && store_.shape(n.tensor).items() > 1;
  }

  bool has_all_expected(const Dict& d) const {
    return !expected_.empty() &&
           std::ranges::any_of(kFronts, [&](std::string_view front) { return has_all_expected(d, front); });
  }

  bool has_all_expected(const Dict& d, std::string_view front) const {
    NameMap<std::string, i64> has;
    for (const NamedTensor* n : d.tensors) {
      std::string name = name_in(d, *n);
      if (name.starts_with(front)) has.emplace(name.substr(front.size()), n->tensor);
    }
    const bool flat = store_.driver().flat;  // without shapes
    return std::ranges::all_of(expected_, [&](const auto& e) {
      auto other_form = [&](std::string_view part) { return e.first.find(part) != e.first.npos; };
      if (std::ranges::any_of(kOtherForms, other_form)) return true;
      auto at = has.find(e.first);
      if (at == has.end()) return false;
      return flat || !e.second || std::ranges::equal(*e.second, store_.dims(at->second));
    });
  }

  const Store& store_;
  const ExpectedTensors& expected_;
  std::vector<Dict> dicts_;
  NameMap<std::string, std::size_t> place_;
  std::vector<const Dict*> candidates_;
};

}  // namespace

ModelDict model_dict(const Store& store, std::span<const NamedTensor> names,
                     std::span<const std::string_view> dicts, const ExpectedTensors& expected) {
  return Choice(store, names, dicts, expected).run();
}

i64 count_expected(std::span<const NamedTensor> names, std::size_t bytes, const ExpectedTensors& expected) {
  return std::ranges::count_if(names, [&](const NamedTensor& n) {
    return n.name.size() > bytes && expected.contains(n.name.substr(bytes));
  });
}

std::string NamedDict::front() const {
  const std::string with_dot = name.ends_with('.') ? name : cat(name, ".");
  const bool there = std::ranges::any_of(tensors, [&](const NamedTensor& n) {
    std::string_view dict = n.name;
    if (!dicts.empty()) dict = dicts[static_cast<std::size_t>(n.tensor)];
    return dict.starts_with(with_dot);
  });
  if (!there || (dicts.empty() && with_dot == kModel && !model_is_a_dict())) return "";
  return with_dot;
}

// Where dicts are not known: the names of the model's folder decide, or else a name of a whole model behind
// it.
bool NamedDict::model_is_a_dict() const {
  std::vector<NamedTensor> in;
  std::ranges::copy_if(tensors, std::back_inserter(in),
                       [](const NamedTensor& n) { return n.name.starts_with(kModel); });
  for (NamedTensor& n : in) n.name = without_wrappers(n.name);
  const i64 with_it = count_expected(in, 0, expected);
  const i64 behind_it = count_expected(in, kModel.size(), expected);
  if (with_it != behind_it) return behind_it > with_it;
  return std::ranges::any_of(in, [](const NamedTensor& n) {
    return is_of_whole_model(std::string_view(n.name).substr(kModel.size()));
  });
}

void NamedDict::refuse_unknown(const Store& store) const {
  std::vector<std::string> found;
  for (std::string_view dict : dicts) {
    if (dict.ends_with('.')) dict.remove_suffix(1);
    if (!dict.empty() && std::ranges::find(found, escaped(dict)) == found.end() && std::ssize(found) < 20)
      found.push_back(escaped(dict));
  }
  Error e(Code::kUnaccounted, "the checkpoint has no dict of the name that `model_dict` gives");
  e.file(store.root()).expected(escaped(name));
  const std::vector<std::string_view> listing(found.begin(), found.end());
  e.found(found.empty() ? std::string("tensors in no dict") : listed(listing));
  if (dicts.empty() && (name == "model" || name == kModel))
    e.note(
        "the dicts of this save are not known, and `model.` is the first part of the model's own names, unless names of a whole model are behind it, as in model.model.norm.weight");
  throw e;
}

}  // namespace mckpt::impl
