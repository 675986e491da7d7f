#include "convert/compare_tensor_lists.h"

#include <algorithm>

#include "core/name_hash.h"

namespace mckpt {

std::vector<std::string> compare_tensor_lists(const Store& source, const std::vector<bool>& may_lack,
                                              const Store& there) {
  NameMap<std::string_view, i64> by_name;
  for (i64 t = 0; t < source.tensor_count(); t++) by_name.emplace(source.name(t), t);
  std::vector<bool> alike = may_lack;
  std::vector<std::string> differences, besides;
  for (i64 t = 0; t < there.tensor_count(); t++) {
    auto at = by_name.find(there.name(t));
    if (at == by_name.end())
      besides.push_back(cat(escaped(there.name(t)), " came back and is not in the source"));
    else
      alike[static_cast<std::size_t>(at->second)] =
          there.dtype(t) == source.dtype(at->second) &&
          std::ranges::equal(there.dims(t), source.dims(at->second));
  }
  for (i64 t = 0; t < source.tensor_count(); t++)
    if (!alike[static_cast<std::size_t>(t)])
      differences.push_back(cat(escaped(source.name(t)), " did not come back as it was"));
  std::ranges::move(besides, std::back_inserter(differences));
  return differences;
}

}  // namespace mckpt
