// Counts tensors, parameters and bytes of a store in one walk over its table. Sizes are declared by files, so
// all sums are checked for overflow.
#include "io/store/summary.h"

#include <algorithm>
#include <array>

#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {

void Amount::add(i64 more_items, i64 more_bytes) {
  tensors++;
  items = checked_add(items, more_items, "the number of all items");
  bytes = checked_add(bytes, more_bytes, "the size of all tensors");
}

StoreSummary summarize(const Store& store, const PackedParameters& packed) {
  StoreSummary s;
  StateParts parts(store);
  std::array<Amount, static_cast<std::size_t>(DType::kCount)> types{};
  for (i64 t = 0; t < store.tensor_count(); t++) {
    DType dtype = store.dtype(t);
    i64 items = store.shape(t).items(), bytes = dtype_bytes(dtype, items);
    s.all.add(items, bytes);
    StatePart part = parts.part(t);
    i64 counted = items;
    if (part == StatePart::kModel) {
      const auto known = packed.find(store.name(t));
      if (known == packed.end())
        counted = parts.parameters(t);
      else if (known->second)
        counted = *known->second;
      else
        part = StatePart::kOther;
    }
    s.parts[static_cast<std::size_t>(part)].add(counted, bytes);
    types[static_cast<std::size_t>(dtype)].add(items, bytes);
  }
  for (std::size_t d = 0; d < types.size(); d++)
    if (types[d].tensors > 0) s.dtypes.push_back({static_cast<DType>(d), types[d]});
  std::stable_sort(s.dtypes.begin(), s.dtypes.end(),
                   [](const StoreSummary::OfType& a, const StoreSummary::OfType& b) {
                     return a.amount.bytes > b.amount.bytes;
                   });
  for (const StoreFile& f : store.files()) s.file_bytes += std::max<i64>(0, f.bytes);
  return s;
}

}  // namespace mckpt::impl
