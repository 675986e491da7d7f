// Looks up every tensor of one store in the other by name, with a hash table of names, and compares types and
// shapes.
#include "convert/compare/differences/tensors.h"

#include <algorithm>

#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::vector<TensorDifference> tensor_differences(const Store& one, const Store& other) {
  NameMap<std::string_view, i64> rest;  // of `other`, not yet found in `one`
  for (i64 t = 0; t < other.tensor_count(); t++) rest.emplace(other.name(t), t);
  std::vector<TensorDifference> differences;
  for (i64 mine : natural_order(one)) {
    auto at = rest.find(one.name(mine));
    i64 its = at == rest.end() ? -1 : at->second;
    if (its >= 0) rest.erase(at);
    bool alike = its >= 0 && one.dtype(mine) == other.dtype(its) &&
                 std::ranges::equal(one.dims(mine), other.dims(its));
    if (!alike) differences.push_back({mine, its});
  }
  if (rest.empty()) return differences;
  for (i64 its : natural_order(other))
    if (auto at = rest.find(other.name(its)); at != rest.end() && at->second == its)
      differences.push_back({-1, its});
  return differences;
}

std::string type_and_shape(const Store& store, i64 tensor) {
  return cat(dtype_name(store.dtype(tensor)), " ", to_string(store.shape(tensor)));
}

}  // namespace mckpt::impl
