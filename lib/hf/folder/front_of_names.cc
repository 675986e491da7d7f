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

constexpr std::string_view kLack = "lack the 'model.' in front that the class has",
                           kMore = "have one 'model.' more in front than the class has",
                           kLackOrMore = "lack the 'model.' in front that the class has, or have one more";

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

std::string fronted_text(const std::vector<FrontedNames>& models) {
  std::string out;
  for (const FrontedNames& m : models) out += cat(out.empty() ? "" : ", ", "names in ", m.where, " ", m.how);
  return cat(out, ": read as transformers loads them, under the names of the class");
}

FrontedStore with_front_of_class(const std::shared_ptr<const Store>& store,
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
  if (!text && !(base && base_class)) return {};
  std::vector<RenamedStore::Tensor> tensors;
  NameSet<std::string> taken;
  bool lack = false, have_more = false;
  for (i64 t = 0; t < store->tensor_count(); t++) {
    const std::string_view name = store->name(t);
    std::string own(name);
    if (name.starts_with(kFront)) {
      const std::string_view rest = name.substr(kFront.size()), part = first_part(rest);
      if (first.contains(part) && !behind_front.contains(part)) own = rest, have_more = true;
    } else if (const std::string_view part = first_part(name);
               behind_front.contains(part) && !first.contains(part)) {
      own = cat(kFront, name), lack = true;
    }
    if (!taken.insert(own).second) return {};
    tensors.push_back({std::move(own), t});
  }
  if (!lack && !have_more) return {};
  return {std::make_unique<RenamedStore>(store, std::move(tensors), true), lack && have_more ? kLackOrMore
                                                                           : lack            ? kLack
                                                                                             : kMore};
}

}  // namespace mckpt::impl
