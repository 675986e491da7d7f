// A box gets the coordinates of the rank's cell in place of coordinates of all cells, and rows of its
// parameter in place of rows of a piece. Its contiguous stretches are then the ranges.
#include "convert/rank/rank_box.h"

#include <algorithm>

#include "convert/jobs/held_tensors.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// The sizes of the tensor on the rank's cell.
std::vector<i64> cell_sizes(const HeldTensor& h) {
  const Shape& local = h.parameter->shape();
  std::vector<i64> sizes(local.dims().begin(), local.dims().end());
  if (!sizes.empty()) sizes[0] = h.piece.rows;
  return sizes;
}

// The ranges of a box that begins at `begin` of a tensor of these sizes.
std::vector<ItemRange> ranges_of(std::span<const i64> shape, const std::vector<i64>& begin,
                                 const std::vector<i64>& sizes) {
  // Behind `fixed` dimensions the box has all of the tensor; the last of them is contiguous too.
  std::size_t fixed = shape.size();
  i64 block = 1;
  while (fixed > 0 && begin[fixed - 1] == 0 && sizes[fixed - 1] == shape[fixed - 1]) block *= shape[--fixed];
  if (fixed == 0) return {{0, block}};
  std::vector<i64> at(begin.begin(), begin.begin() + static_cast<std::ptrdiff_t>(fixed));
  std::vector<ItemRange> out;
  for (;;) {
    i64 first = 0;
    for (std::size_t d = 0; d < fixed; d++) first = first * shape[d] + at[d];
    out.push_back({first * block, (first + sizes[fixed - 1]) * block});
    std::size_t d = fixed - 1;
    while (d > 0 && ++at[d - 1] == begin[d - 1] + sizes[d - 1]) d--, at[d] = begin[d];
    if (d == 0) return out;
  }
}

}  // namespace

std::vector<i64> shape_in(const HeldTensor& h, BoxSpace space) {
  std::vector<i64> sizes = cell_sizes(h);
  const Holding& holding = *h.parameter->holding;
  if (space == BoxSpace::kAllCells && holding.partition_dim >= 0)
    sizes[holding.partition_dim] *= distinct_part(holding, h.parameter->part).count;
  return sizes;
}

std::optional<std::vector<ItemRange>> items_of_box(const HeldTensor& h, std::vector<i64> offsets,
                                                   const std::vector<i64>& sizes, BoxSpace space) {
  const ModelParameter& p = *h.parameter;
  const std::vector<i64> cell = cell_sizes(h);
  if (std::ranges::find(sizes, 0) != sizes.end()) return std::vector<ItemRange>{};
  const int dim = p.holding->partition_dim;
  if (space == BoxSpace::kAllCells && dim >= 0)
    offsets[dim] -= distinct_part(*p.holding, p.part).index * cell[dim];
  for (std::size_t d = 0; d < cell.size(); d++)
    if (offsets[d] < 0 || offsets[d] + sizes[d] > cell[d]) return std::nullopt;
  if (!offsets.empty()) offsets[0] += h.piece.first_row;
  return ranges_of(p.shape().dims(), offsets, sizes);
}

}  // namespace mckpt::impl
