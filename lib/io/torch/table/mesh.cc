// Four forms, from the newest to the oldest:
//
//   torch 2.13   _layout {axes: a _FlatLayout {shape, stride} for each dimension}, and the ranks of the grid
//   torch 2.10   _layout {shape, stride} of all dimensions together, and the ranks of the grid
//   torch 2.3    a tensor `mesh`, whose sizes are the mesh's, and its ranks (2.9 an unneeded layout as well)
//   older        the tensor `mesh`, and of each dimension the ranks of the writer's own group
//
// A layout is a size and a stride in the ranks of the grid. Each rank pickles the same numbers for a part of
// the grid, and means its own row:
//
//   grid of ranks  0 1   its second dimension, size 2, stride 1: ranks [0, 1] where rank 0 or 1 wrote the
//                  2 3   file, [2, 3] where 2 or 3 wrote it; the first, size 2, stride 2: [0, 2] or [1, 3]
//
// A dimension that was flattened from others has a size and a stride for each of them; one of size 1 may have
// none.
#include "io/torch/table/mesh.h"

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/torch/table/spec_fields.h"
#include "io/torch/table/tensor.h"

namespace mckpt::impl {
namespace {

// One dimension of a mesh, in steps through the grid.
struct Axis {
  std::vector<i64> sizes, strides;
};

class MeshLayout {
 public:
  MeshLayout(PickleValue layout, std::span<const i64> grid) : grid_(grid) {
    const PickleObject& o = layout.as_object();
    if (const PickleValue* axes = o.field("axes")) {
      for (PickleValue axis : axes->items()) {
        const PickleObject* flat = spec_object(axis, Known::kFlatLayout);
        if (flat == nullptr) throw Error(Code::kBadPickle, "a dimension of a device mesh has no layout");
        add(spec_field(*flat, "shape"), spec_field(*flat, "stride"));
      }
    } else if (PickleValue shape = spec_field(o, "shape"), stride = spec_field(o, "stride"); shape.is_int()) {
      add(shape, stride);
    } else {
      for (i64 d = 0; d < shape.size(); d++) add(shape.at(d), stride.at(d));
      if (stride.size() != shape.size()) throw unfit();
    }
    if (Shape(mesh_sizes_).items() > kMostRanks) throw unfit();
  }

  const std::vector<i64>& mesh_sizes() const { return mesh_sizes_; }

  // The ranks of the row that has that rank, row-major; of the first row if there is no such rank. `own`: the
  // rank's coordinates, where the file has them.
  std::vector<i64> row_of(i64 rank, const std::optional<std::vector<i64>>& own) const {
    const i64 place = std::ranges::find(grid_, rank) - grid_.begin();
    const i64 begin = place == std::ssize(grid_) ? 0 : own ? place - steps_to(*own) : begin_of_row(place);
    std::vector<i64> out;
    for (i64 i = 0; i < Shape(mesh_sizes_).items(); i++) {
      const i64 at = checked_add(begin, steps_to(item_place(i, mesh_sizes_)), "a mesh stride");
      if (at < 0 || at >= std::ssize(grid_))
        throw Error(Code::kBadPickle, "a device mesh names a rank that is not in its map").found(at);
      out.push_back(grid_[at]);
    }
    return out;
  }

 private:
  static Error unfit() {
    return Error(Code::kBadPickle, "the shape and the strides of a device mesh do not fit together");
  }

  void add(PickleValue shape, PickleValue stride) {
    Axis axis{spec_integers(shape), spec_integers(stride)};
    if (axis.sizes.size() != axis.strides.size()) throw unfit();
    if (std::ranges::any_of(axis.sizes, [](i64 size) { return size < 0; }))
      throw Error(Code::kBadPickle, "a size of a device mesh is negative").found(dims_to_string(axis.sizes));
    mesh_sizes_.push_back(Shape(axis.sizes).items());
    axes_.push_back(std::move(axis));
  }

  // The coordinates of the i-th item of a box of these sizes, the last one fastest.
  static std::vector<i64> item_place(i64 i, std::span<const i64> sizes) {
    std::vector<i64> out(sizes.size());
    for (std::size_t d = sizes.size(); d-- > 0; i /= sizes[d]) out[d] = i % sizes[d];
    return out;
  }

  // From the beginning of a row. pre: one coordinate for each dimension.
  i64 steps_to(std::span<const i64> place) const {
    i64 steps = 0;
    for (std::size_t d = 0; d < axes_.size(); d++) {
      const std::vector<i64> within = item_place(place[d], axes_[d].sizes);
      for (std::size_t e = 0; e < within.size(); e++)
        steps =
            checked_add(steps, checked_mul(within[e], axes_[d].strides[e], "a mesh stride"), "a mesh stride");
    }
    return steps;
  }

  // The place in the grid less its steps along the mesh's own dimensions.
  i64 begin_of_row(i64 place) const {
    i64 begin = place;
    for (const Axis& axis : axes_)
      for (std::size_t e = 0; e < axis.sizes.size(); e++)
        if (axis.sizes[e] > 1 && axis.strides[e] > 0)
          begin -= place / axis.strides[e] % axis.sizes[e] * axis.strides[e];
    return begin;
  }

  std::vector<Axis> axes_;
  std::vector<i64> mesh_sizes_;
  std::span<const i64> grid_;
};

// The coordinates of the rank that wrote the file, if it has them.
std::optional<std::vector<i64>> own_place(const PickleObject& o, std::span<const i64> sizes) {
  std::vector<i64> place = spec_integers(spec_field(o, "_coordinate_on_dim"));
  if (place.size() != sizes.size()) return std::nullopt;
  for (std::size_t d = 0; d < sizes.size(); d++)
    if (place[d] < 0 || place[d] >= sizes[d]) return std::nullopt;
  return place;
}

// The ranks of a mesh whose pickle has only the writer's own group in each dimension. A mesh of one dimension
// is its group. In a mesh of several dimensions the groups go in even steps, as torch numbers them, and the
// other ranks follow; none where the steps are uneven. If the mesh has other ranks after all, two ranks
// disagree, which is found where their files are joined.
std::vector<i64> ranks_of_groups(PickleValue groups, std::span<const i64> sizes,
                                 const std::optional<std::vector<i64>>& own) {
  if (groups.size() != static_cast<i64>(sizes.size()) || !own) return {};
  std::vector<i64> ranks;
  i64 writer = 0;
  std::size_t d = 0;
  for (PickleValue tag_and_ranks : groups.items()) {
    const std::vector<i64> group = spec_integers(tag_and_ranks.at(1));
    if (static_cast<i64>(group.size()) != sizes[d]) return {};
    for (i64 rank : group)
      if (rank < 0 || rank >= kMostRanks) return {};
    if (sizes.size() == 1) return group;
    const i64 step = sizes[d] > 1 ? group[1] - group[0] : 0;
    for (i64 i = 0; i < sizes[d]; i++)
      if (group[i] != group[0] + i * step) return {};
    const i64 place = (*own)[d];
    if (d == 0) ranks = {writer = group[place]};
    if (group[place] != writer || static_cast<i64>(ranks.size()) > kMostRanks / sizes[d]) return {};
    std::vector<i64> more;
    for (i64 rank : ranks)
      for (i64 i = 0; i < sizes[d]; i++) more.push_back(rank + (i - place) * step);
    ranks = std::move(more);
    d++;
  }
  return ranks;
}

}  // namespace

TorchMesh read_torch_mesh(const PickleObject& o) {
  TorchMesh m;
  if (PickleValue rank = spec_field(o, "_rank"); rank.is_int()) m.rank = rank.as_int();
  const PickleValue layout = spec_field(o, "_layout");
  if (const PickleValue* ranks = o.field("_flatten_rank_map");
      ranks && spec_object(layout, Known::kMeshLayout)) {
    // The numbers of the ranks as a tensor, which torch makes; the list beside it has them, too.
    if (PickleValue map = spec_field(o, "_rank_map"); is_torch_tensor(map)) read_plain_shape(map);
    const std::vector<i64> grid = spec_integers(*ranks);
    const MeshLayout of_grid(layout, grid);
    m.sizes = of_grid.mesh_sizes();
    m.ranks = of_grid.row_of(m.rank, own_place(o, m.sizes));
  } else {
    m.ranks = spec_integers(spec_field(o, "_flatten_mesh_list"));
    m.sizes = {static_cast<i64>(m.ranks.size())};
    if (PickleValue tensor = spec_field(o, "mesh"); is_torch_tensor(tensor)) {
      // A mesh that is itself a DTensor could be one over itself.
      Shape shape = read_plain_shape(tensor);
      m.sizes.assign(shape.dims().begin(), shape.dims().end());
      if (m.ranks.empty())
        m.ranks = ranks_of_groups(spec_field(o, "_dim_group_infos"), m.sizes, own_place(o, m.sizes));
    }
  }
  if (static_cast<i64>(m.ranks.size()) != Shape(m.sizes).items())
    throw Error(Code::kBadPickle, "the sizes and the ranks of a device mesh do not fit together")
        .found(cat("a mesh of ", dims_to_string(m.sizes), ", ", counted(std::ssize(m.ranks), "rank")));
  for (i64 rank : m.ranks)
    if (rank < 0 || rank >= kMostRanks)
      throw Error(Code::kBadPickle, "a device mesh names a rank that no job has").found(rank);
  return m;
}

std::optional<std::vector<i64>> mesh_place(const TorchMesh& mesh, i64 rank) {
  auto it = std::find(mesh.ranks.begin(), mesh.ranks.end(), rank);
  if (it == mesh.ranks.end()) return std::nullopt;
  std::vector<i64> place(mesh.sizes.size());
  i64 rest = it - mesh.ranks.begin();
  for (std::size_t d = place.size(); d-- > 0; rest /= mesh.sizes[d]) place[d] = rest % mesh.sizes[d];
  return place;
}

}  // namespace mckpt::impl
