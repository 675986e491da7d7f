// Looks for the dict in what the save keeps, or else in the names.
#include "convert/own/named_dict.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/folder/name_words.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kModel = "model.";

}  // namespace

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
    e.note("the dicts of this save are not known, and `model.` is the first part of the model's own names, unless names of a whole model are behind it, as in model.model.norm.weight");
  throw e;
}

}  // namespace mckpt::impl
