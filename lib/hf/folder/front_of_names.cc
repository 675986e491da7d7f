// A name is judged by its first two parts: "layers" of "layers.0.mlp.w.weight".
#include "hf/folder/front_of_names.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "hf/adapter/renamed_store.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kFront = "model.", kLayers = "layers";
// First parts of names of a model of text. Models with images have other names in memory than in their files,
// and transformers looks for fronts of those in memory.
constexpr std::string_view kOfText[] = {"model", "lm_head", "score", "mtp"};

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

std::unique_ptr<Store> with_front_of_class(const std::shared_ptr<const Store>& store,
                                           const std::vector<std::string_view>& expected, bool base_class) {
  NameSet<std::string_view> first, behind_front;
  for (std::string_view name : expected) {
    first.insert(first_part(name));
    if (name.starts_with(kFront)) behind_front.insert(first_part(name.substr(kFront.size())));
  }
  const bool base = behind_front.empty() && first.contains(kLayers);  // a class without the front
  const bool text = behind_front.contains(kLayers) && std::ranges::all_of(first, [](std::string_view part) {
                      return std::ranges::find(kOfText, part) != std::end(kOfText);
                    });
  if (!text && !(base && base_class)) return nullptr;
  std::vector<RenamedStore::Tensor> tensors;
  NameSet<std::string> taken;
  bool changed = false;
  for (i64 t = 0; t < store->tensor_count(); t++) {
    const std::string_view name = store->name(t);
    std::string own(name);
    if (name.starts_with(kFront)) {
      const std::string_view rest = name.substr(kFront.size()), part = first_part(rest);
      if (first.contains(part) && !behind_front.contains(part)) own = rest;
    } else if (const std::string_view part = first_part(name);
               behind_front.contains(part) && !first.contains(part)) {
      own = cat(kFront, name);
    }
    changed |= own != name;
    if (!taken.insert(own).second) return nullptr;
    tensors.push_back({std::move(own), t});
  }
  if (!changed) return nullptr;
  return std::make_unique<RenamedStore>(store, std::move(tensors), true);
}

}  // namespace mckpt::impl
