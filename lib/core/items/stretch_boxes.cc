// Walks through the stretch. Each box is as large as it can be at its place: it takes whole steps along the
// outermost dimension of which a step begins there and fits, so boxes first grow and then shrink.
#include "core/items/stretch_boxes.h"

#include <algorithm>

namespace mckpt::impl {

i64 stretch_boxes(std::span<const i64> dims, ItemRange stretch, std::vector<i64>& numbers) {
  const std::size_t rank = dims.size();
  std::vector<i64> step(rank, 1);  // items of one step along a dimension
  if (!stretch.empty())
    for (std::size_t d = rank; d-- > 1;) step[d - 1] = step[d] * dims[d];
  i64 boxes = 0;
  for (i64 at = stretch.begin; at < stretch.end; boxes++) {
    std::size_t along = 0;
    while (along + 1 < rank && (at % step[along] != 0 || step[along] > stretch.end - at)) along++;
    for (std::size_t d = 0; d < rank; d++) numbers.push_back(at / step[d] % dims[d]);
    i64 steps = 1;
    if (rank > 0)
      steps = std::min(dims[along] - at / step[along] % dims[along], (stretch.end - at) / step[along]);
    for (std::size_t d = 0; d < rank; d++) numbers.push_back(d < along ? 1 : d == along ? steps : dims[d]);
    at += rank > 0 ? steps * step[along] : 1;
  }
  return boxes;
}

}  // namespace mckpt::impl
