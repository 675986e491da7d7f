// Reads the placements of a DTensor and computes the box that a rank has.
//
// Offsets come from sizes: along each cut, in the order of the mesh, a piece begins where the one before it
// ends. 10 rows over 4 ranks that store 3, 3, 3 and 1 rows are at 0, 3, 6 and 9; stored as 4, 4, 2 and 0
// they are at 0, 4, 8 and 10. Both occur, and no field of the file says which it is.
#include "io/torch/sharding.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "io/pickle/classes.h"
#include "io/pickle/value.h"
#include "io/torch/tensor.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;
using Placement = TorchPlacement::Kind;

// More ranks than any run has; a mesh in a file made by hand could claim any number.
constexpr i64 kMostRanks = 1 << 20;

// The object, if it is of that class; null otherwise.
const PickleObject* object_of(PickleValue v, Known known) {
  return v.is(Kind::kObject) && v.as_object().type->known == known ? &v.as_object() : nullptr;
}

// None if there is no such field.
PickleValue field(const PickleObject& o, std::string_view name) {
  const PickleValue* v = o.field(name);
  return v ? *v : PickleValue();
}

// An integer, or a tuple (of tuples) of them, flattened. `left` bounds the work.
void append_integers(std::vector<i64>& out, PickleValue v, int depth, i64& left) {
  if (v.is_int()) out.push_back(v.as_int());
  if (--left < 0 || depth == 0)
    throw Error(Code::kBadPickle, "a device mesh is not made of integers, or is too large");
  for (PickleValue item : v.items()) append_integers(out, item, depth - 1, left);
}

// All integers in it, in order.
std::vector<i64> integers(PickleValue v) {
  std::vector<i64> out;
  i64 left = kMostRanks;
  append_integers(out, v, 8, left);
  return out;
}

// Older releases pickle the dimension as an argument, newer ones as a field.
TorchPlacement read_placement(PickleValue v) {
  if (!v.is(Kind::kObject))
    throw Error(Code::kBadPickle, "a placement of a DTensor is not a placement of torch");
  const PickleObject& o = v.as_object();
  PickleValue dim = o.field("dim") ? field(o, "dim") : o.args.at(0);
  switch (o.type->known) {
    case Known::kReplicate:
      return {Placement::kReplicate, 0};
    case Known::kPartial:
      return {Placement::kPartial, 0};
    case Known::kShard:
    case Known::kStridedShard: {
      i64 d = dim.to_int("the dimension of a placement");
      if (d < 0 || d >= Shape::kMaxRank)
        throw Error(Code::kBadPickle, "a DTensor is sharded along no dimension").found(d);
      return {o.type->known == Known::kShard ? Placement::kShard : Placement::kStridedShard,
              static_cast<int>(d)};
    }
    default:
      throw Error(Code::kBadPickle, "a DTensor has a placement that mckpt does not know")
          .found(escaped(o.type->name));
  }
}

// What torch 2.10 and newer pickle of a mesh: for each dimension a size and a stride, in the ranks of the
// whole grid that it was taken from. Each rank pickles the same numbers for a part of the grid, and means its
// own row:
//
//   grid of ranks  0 1   its second dimension, sizes [2], strides [1]: ranks [0, 1] where rank 0 or 1 wrote the
//                  2 3   file, [2, 3] where 2 or 3 wrote it; the first, sizes [2], strides [2]: [0, 2] or [1, 3]
class MeshLayout {
 public:
  // A dimension that was flattened is a tuple of the dimensions that it consists of.
  MeshLayout(PickleValue shape, PickleValue stride, std::span<const i64> grid)
      : sizes_(integers(shape)), strides_(integers(stride)), grid_(grid) {
    for (PickleValue dimension : shape.items()) mesh_sizes_.push_back(Shape(integers(dimension)).items());
    if (shape.is_int()) mesh_sizes_ = sizes_;
    if (strides_.size() != sizes_.size() || Shape(sizes_).items() > kMostRanks)
      throw Error(Code::kBadPickle, "the shape and the strides of a device mesh do not fit together");
  }

  const std::vector<i64>& mesh_sizes() const { return mesh_sizes_; }

  // The ranks of the row that has that rank, row-major; of the first row if there is no such rank.
  std::vector<i64> row_of(i64 rank) const {
    const i64 begin = begin_of_row(std::find(grid_.begin(), grid_.end(), rank) - grid_.begin());
    const i64 count = Shape(sizes_).items();
    std::vector<i64> out;
    for (i64 i = 0; i < count; i++) {
      i64 at = begin, rest = i;
      for (std::size_t d = sizes_.size(); d-- > 0; rest /= sizes_[d])
        at = checked_add(at, checked_mul(rest % sizes_[d], strides_[d], "a mesh stride"), "a mesh stride");
      if (at < 0 || at >= std::ssize(grid_))
        throw Error(Code::kBadPickle, "a device mesh names a rank that is not in its map").found(at);
      out.push_back(grid_[at]);
    }
    return out;
  }

 private:
  // The place in the grid less its steps along the mesh's own dimensions.
  i64 begin_of_row(i64 place) const {
    if (place == std::ssize(grid_)) return 0;
    i64 begin = place;
    for (std::size_t d = 0; d < sizes_.size(); d++)
      if (sizes_[d] > 1 && strides_[d] > 0) begin -= place / strides_[d] % sizes_[d] * strides_[d];
    return begin;
  }

  std::vector<i64> sizes_, strides_, mesh_sizes_;
  std::span<const i64> grid_;
};

// torch 2.10 and newer store a layout and the ranks of the whole grid; older releases a tensor `mesh`, whose
// sizes are the mesh's, and its ranks (2.9 a layout as well, which is not needed).
TorchMesh read_mesh(const PickleObject& o) {
  TorchMesh m;
  if (PickleValue rank = field(o, "_rank"); rank.is_int()) m.rank = rank.as_int();
  const PickleObject* layout = object_of(field(o, "_layout"), Known::kMeshLayout);
  if (const PickleValue* ranks = o.field("_flatten_rank_map"); layout && ranks) {
    const std::vector<i64> grid = integers(*ranks);
    MeshLayout of_grid(field(*layout, "shape"), field(*layout, "stride"), grid);
    m.sizes = of_grid.mesh_sizes();
    m.ranks = of_grid.row_of(m.rank);
  } else {
    m.ranks = integers(field(o, "_flatten_mesh_list"));
    m.sizes = {static_cast<i64>(m.ranks.size())};
    if (PickleValue tensor = field(o, "mesh"); is_torch_tensor(tensor)) {
      // A mesh that is itself a DTensor could be one over itself.
      Shape shape = read_plain_shape(tensor);
      m.sizes.assign(shape.dims().begin(), shape.dims().end());
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

// The mesh dimensions that cut tensor dimension `dim`, outermost first: in the recorded order if there is
// one, otherwise plain shards from left to right and then strided ones, which were cut after the plain ones
// to their right.
std::vector<std::size_t> cuts_of(const TorchSharding& s, int dim) {
  std::vector<std::size_t> order, cuts;
  for (int m : s.shard_order)
    if (std::find(order.begin(), order.end(), m) == order.end()) order.push_back(static_cast<std::size_t>(m));
  // A strided shard was cut after the plain ones to its right.
  for (Placement kind : {Placement::kShard, Placement::kStridedShard})
    for (std::size_t m = 0; m < s.placements.size(); m++)
      if (s.placements[m].kind == kind && std::find(order.begin(), order.end(), m) == order.end())
        order.push_back(m);
  for (std::size_t m : order) {
    const TorchPlacement& p = s.placements[m];
    if (p.dim == dim && (p.kind == Placement::kShard || p.kind == Placement::kStridedShard))
      cuts.push_back(m);
  }
  return cuts;
}

}  // namespace

i64 TorchSharding::least_ranks() const {
  if (!mesh) return ranks;
  return mesh->ranks.empty() ? 0 : *std::ranges::max_element(mesh->ranks) + 1;
}

std::shared_ptr<const TorchMesh> TorchMeshes::read(PickleValue device_mesh) {
  const PickleObject* o = object_of(device_mesh, Known::kDeviceMesh);
  if (o == nullptr)
    throw Error(Code::kBadPickle, "a DTensor has no device mesh").found(kind_name(device_mesh.kind()));
  std::shared_ptr<const TorchMesh>& mesh = by_node_[device_mesh.node()];
  if (!mesh) mesh = std::make_shared<const TorchMesh>(read_mesh(*o));
  return mesh;
}

TorchSharding read_torch_sharding(PickleValue spec, TorchMeshes& meshes) {
  const PickleObject* o = object_of(spec, Known::kDTensorSpec);
  if (o == nullptr) throw Error(Code::kBadPickle, "a DTensor has no spec").found(kind_name(spec.kind()));
  auto part = [&](std::string_view name, i64 position) {
    return o->field(name) ? field(*o, name) : o->args.at(position);
  };
  TorchSharding s;
  s.mesh = meshes.read(part("mesh", 0));
  for (PickleValue p : part("placements", 1).items()) {
    if (s.placements.size() == s.mesh->sizes.size()) break;
    s.placements.push_back(read_placement(p));
  }
  if (s.placements.size() != s.mesh->sizes.size() ||
      part("placements", 1).size() != static_cast<i64>(s.placements.size()))
    throw Error(Code::kBadPickle, "a DTensor does not have one placement for each dimension of its mesh")
        .expected(s.mesh->sizes.size())
        .found(part("placements", 1).size());
  for (PickleValue entry : field(*o, "shard_order").items()) {
    if (!entry.is(Kind::kObject)) continue;  // ShardOrderEntry(tensor dimension, mesh dimensions)
    for (i64 m : integers(entry.as_object().args.at(1)))
      if (m >= 0 && m < static_cast<i64>(s.placements.size()) && s.shard_order.size() < s.placements.size())
        s.shard_order.push_back(static_cast<int>(m));
  }
  return s;
}

std::string to_string(const TorchSharding& s) {
  if (s.boxes)
    return cat("ShardedTensor ", dims_to_string(s.global), " of ",
               counted(std::ssize(s.boxes->all), "shard"));
  std::string out;
  for (const TorchPlacement& p : s.placements) {
    if (!out.empty()) out += ", ";
    switch (p.kind) {
      case Placement::kReplicate:
        out += "Replicate";
        break;
      case Placement::kPartial:
        out += "Partial";
        break;
      case Placement::kShard:
        out += cat("Shard(", p.dim, ")");
        break;
      case Placement::kStridedShard:
        out += cat("StridedShard(", p.dim, ")");
        break;
    }
  }
  return cat(out, " over a mesh of ", dims_to_string(s.mesh->sizes));
}

std::optional<std::vector<i64>> mesh_place(const TorchMesh& mesh, i64 rank) {
  auto it = std::find(mesh.ranks.begin(), mesh.ranks.end(), rank);
  if (it == mesh.ranks.end()) return std::nullopt;
  std::vector<i64> place(mesh.sizes.size());
  i64 rest = it - mesh.ranks.begin();
  for (std::size_t d = place.size(); d-- > 0; rest /= mesh.sizes[d]) place[d] = rest % mesh.sizes[d];
  return place;
}

namespace {

// Adds up the sizes along tensor dimension d. Pieces whose places differ only along the cuts of d form a
// row: in it, each begins where the one before it ends. Returns what is wrong, or "".
std::string place_along(const TorchSharding& s, std::size_t d, std::span<const std::vector<i64>> places,
                        std::span<TorchPiece> pieces) {
  std::vector<std::size_t> cuts = cuts_of(s, static_cast<int>(d));
  std::map<std::pair<std::vector<i64>, std::vector<i64>>, std::size_t> order;  // by row, then by place in it
  for (std::size_t i = 0; i < pieces.size(); i++) {
    if (cuts.empty() && pieces[i].sizes[d] != s.global[d])
      return cat("rank ", pieces[i].rank, " holds ", pieces[i].sizes[d], " of ", s.global[d],
                 " along dimension ", d, ", which is not sharded");
    if (cuts.empty()) continue;
    std::vector<i64> row = places[i], step;
    for (std::size_t m : cuts) step.push_back(std::exchange(row[m], 0));
    order[{row, step}] = i;
  }
  const std::vector<i64>* row = nullptr;
  i64 at = 0;
  for (const auto& [key, i] : order) {
    if (row == nullptr || *row != key.first) at = 0;
    row = &key.first;
    pieces[i].offsets[d] = at;
    at = checked_add(at, pieces[i].sizes[d], "the size of a sharded tensor");
    if (at > s.global[d])
      return cat("the ranks hold ", at, " of ", s.global[d], " along dimension ", d, ": more than there are");
  }
  return "";
}

}  // namespace

void mark_replicas(std::span<TorchPiece> pieces) {
  std::map<std::pair<std::vector<i64>, std::vector<i64>>, bool> seen;
  for (TorchPiece& p : pieces)
    p.replica = std::exchange(seen[{p.offsets, {p.sizes.begin(), p.sizes.end()}}], true);
}

namespace {

// Places the pieces that the ranks of one mesh have.
std::string place_in_mesh(std::span<TorchPiece> pieces) {
  const TorchSharding& s = *pieces[0].sharding;
  const TorchMesh& mesh = *s.mesh;
  std::vector<std::vector<i64>> places;
  for (TorchPiece& p : pieces) {
    p.offsets.assign(p.sizes.size(), 0);
    std::optional<std::vector<i64>> place = mesh_place(mesh, p.rank);
    if (!place) return cat("rank ", p.rank, " is not in the tensor's device mesh");
    places.push_back(std::move(*place));
  }
  const bool all_there = pieces.size() == mesh.ranks.size();
  for (TorchPiece& p : pieces) {
    if (all_there) break;
    std::optional<std::vector<i64>> offsets = even_offsets(s, p.rank, p.sizes);
    if (!offsets)
      return cat("the tensor is of ", counted(std::ssize(mesh.ranks), "rank"), ", of which ", pieces.size(),
                 " are there, and uneven pieces do not say where they begin");
    p.offsets = std::move(*offsets);
  }
  for (std::size_t d = 0; all_there && d < s.global.size(); d++)
    if (std::string wrong = place_along(s, d, places, pieces); !wrong.empty()) return wrong;
  return "";
}

}  // namespace

std::string place_pieces(std::span<TorchPiece> pieces) {
  for (const TorchPlacement& p : pieces[0].sharding->placements)
    if (p.kind == Placement::kPartial)
      return "the ranks store partial sums of the tensor, which mckpt does not add up";
  std::set<i64> ranks;
  std::vector<bool> placed(pieces.size());
  for (std::size_t first = 0; first < pieces.size(); first++) {
    if (placed[first]) continue;
    const TorchMesh& mesh = *pieces[first].sharding->mesh;
    for (i64 rank : mesh.ranks)
      if (!ranks.insert(rank).second)
        return cat("rank ", rank, " is twice in the device meshes of the tensor");
    std::vector<std::size_t> indices;
    std::vector<TorchPiece> row;
    for (std::size_t i = first; i < pieces.size(); i++) {
      const TorchMesh& other = *pieces[i].sharding->mesh;
      if (placed[i] || (&other != &mesh && other.ranks != mesh.ranks)) continue;
      placed[i] = true;
      indices.push_back(i);
      row.push_back(pieces[i]);
    }
    if (std::string wrong = place_in_mesh(row); !wrong.empty()) return wrong;
    for (std::size_t i = 0; i < row.size(); i++) pieces[indices[i]].offsets = std::move(row[i].offsets);
  }
  mark_replicas(pieces);
  return "";
}

// Each cut divides what the cuts before it left, rounded up.
std::optional<std::vector<i64>> even_offsets(const TorchSharding& s, i64 rank, std::span<const i64> sizes) {
  std::optional<std::vector<i64>> place = mesh_place(*s.mesh, rank);
  std::vector<i64> offsets(s.global.size(), 0);
  if (!place) return std::nullopt;
  for (std::size_t d = 0; d < s.global.size(); d++) {
    i64 size = s.global[d];
    for (std::size_t m : cuts_of(s, static_cast<int>(d))) {
      i64 step = ceil_div(size, s.mesh->sizes[m]);
      i64 begin = std::min(size, (*place)[m] * step);
      offsets[d] += begin;
      size = std::min(step, size - begin);
    }
    if (size != sizes[d]) return std::nullopt;
  }
  return offsets;
}

}  // namespace mckpt::impl
