// Two readings of a strided shard are tried against the sizes of the pieces:
//
//   as it stands    cuts from left to right, each of the blocks of its own
//   as an order     the blocks are the parts of cuts to the right that come before it; these are found by
//                   their number, as torch itself does when it makes a tensor whole
//
// 10 rows over 4 ranks that store 3, 3, 3 and 1 rows are at 0, 3, 6 and 9; stored as 4, 4, 2 and 0 they are
// at 0, 4, 8 and 10. Both occur, and no field of the file says which it is.
#include "io/torch/placing.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace {

using Placement = TorchPlacement::Kind;

// Boxes of one piece; real ones have a few, one for each matrix that was packed into a tensor.
constexpr std::size_t kMostBoxes = 1 << 12;

// A cut of a tensor dimension by a mesh dimension, in so many blocks.
struct Cut {
  std::size_t mesh_dim;
  i64 blocks;
};
using Cuts = std::vector<Cut>;  // outermost first

bool is_plain(const Cuts& cuts) {
  return std::ranges::all_of(cuts, [](const Cut& c) { return c.blocks == 1; });
}

// The mesh dimensions that cut tensor dimension `dim`, as they come: in the recorded order, or from left to
// right.
std::vector<std::size_t> cutting(const TorchSharding& s, int dim, bool recorded) {
  std::vector<std::size_t> order;
  auto add = [&](std::size_t m) {
    if (s.placements[m].cuts(dim) && std::ranges::find(order, m) == order.end()) order.push_back(m);
  };
  if (recorded)
    for (int m : s.shard_order) add(static_cast<std::size_t>(m));
  for (std::size_t m = 0; m < s.placements.size(); m++) add(m);
  return order;
}

// The order of plain cuts that strided ones stand for: from right to left, each is put behind the cuts that
// make as many parts as it has blocks. Nothing if there is no such order.
std::optional<Cuts> decoded(const TorchSharding& s, int dim) {
  Cuts out;
  for (std::size_t m = s.placements.size(); m-- > 0;) {
    const TorchPlacement& p = s.placements[m];
    if (!p.cuts(dim)) continue;
    i64 parts = 1;
    auto at = out.begin();
    while (at != out.end() && parts != p.blocks) parts *= s.mesh->sizes[(at++)->mesh_dim];
    if (parts != p.blocks) return std::nullopt;
    out.insert(at, {m, 1});
  }
  return out;
}

// The readings of the cuts of one tensor dimension: one or two.
std::vector<Cuts> readings(const TorchSharding& s, int dim) {
  auto is_strided = [&](const TorchPlacement& p) {
    return p.kind == Placement::kStridedShard && p.cuts(dim);
  };
  const bool strided = std::ranges::any_of(s.placements, is_strided);
  Cuts as_it_stands;
  for (std::size_t m : cutting(s, dim, !strided || s.order_is_recorded))
    as_it_stands.push_back({m, s.placements[m].blocks});
  std::vector<Cuts> out = {std::move(as_it_stands)};
  if (strided && !s.order_is_recorded)
    if (std::optional<Cuts> order = decoded(s, dim)) out.push_back(std::move(*order));
  return out;
}

// The items from `begin` on of what the stretches are, one after the other.
void append_part(std::vector<ItemRange>& out, std::span<const ItemRange> stretches, i64 begin, i64 end) {
  i64 at = 0;
  for (ItemRange r : stretches) {
    const i64 from = std::max(begin, at), to = std::min(end, at + r.items());
    if (from < to) {
      const ItemRange part{r.begin + from - at, r.begin + to - at};
      if (!out.empty() && out.back().end == part.begin)
        out.back().end = part.end;
      else
        out.push_back(part);
    }
    at += r.items();
  }
}

i64 items_of(std::span<const ItemRange> stretches) {
  i64 items = 0;
  for (ItemRange r : stretches) items += r.items();
  return items;
}

// The part that the rank at `place` has of a dimension of that size; nothing if it is in too many stretches.
std::optional<std::vector<ItemRange>> part_of(const TorchMesh& mesh, const Cuts& cuts, i64 size,
                                              std::span<const i64> place) {
  std::vector<ItemRange> held = {{0, size}};
  for (const Cut& cut : cuts) {
    const i64 all = items_of(held), block = std::max<i64>(1, ceil_div(all, cut.blocks));
    if (ceil_div(all, block) > static_cast<i64>(kMostBoxes)) return std::nullopt;
    std::vector<ItemRange> part;
    for (i64 begin = 0; begin < all; begin += block) {
      const i64 end = std::min(all, begin + block);
      const i64 step = ceil_div(end - begin, mesh.sizes[cut.mesh_dim]);
      // No product: the mesh of a file made by hand may be large.
      const i64 index = place[cut.mesh_dim];
      const i64 from = index > (end - begin) / step ? end : std::min(end, begin + index * step);
      append_part(part, held, from, std::min(end, from + step));
      if (part.size() > kMostBoxes) return std::nullopt;
    }
    held = std::move(part);
  }
  if (held.empty()) held.push_back({size, size});
  return held;
}

// The pieces of one mesh, with the places of their ranks in it.
struct Placed {
  std::span<TorchPiece> pieces;
  std::vector<std::vector<i64>> places;
};

// Where all pieces are along dimension d by that reading; nothing if one of them is of another size.
std::optional<TorchStretches> by_reading(const Placed& of, const Cuts& cuts, std::size_t d) {
  const TorchSharding& s = *of.pieces[0].sharding;
  TorchStretches out;
  for (std::size_t i = 0; i < of.pieces.size(); i++) {
    std::optional<std::vector<ItemRange>> part = part_of(*s.mesh, cuts, s.global[d], of.places[i]);
    if (!part || items_of(*part) != of.pieces[i].sizes[d]) return std::nullopt;
    out.push_back(std::move(*part));
  }
  return out;
}

// By the sizes of the pieces. Pieces whose places differ only along the cuts form a row: in it, each begins
// where the one before it ends. Sets `wrong` if there are more items than the tensor has.
TorchStretches by_sizes(const Placed& of, const Cuts& cuts, std::size_t d, std::string& wrong) {
  std::map<std::pair<std::vector<i64>, std::vector<i64>>, std::size_t> order;  // by row, then by place in it
  for (std::size_t i = 0; i < of.pieces.size(); i++) {
    std::vector<i64> row = of.places[i], step;
    for (const Cut& cut : cuts) step.push_back(std::exchange(row[cut.mesh_dim], 0));
    order[{row, step}] = i;
  }
  TorchStretches out(of.pieces.size());
  const i64 size = of.pieces[0].sharding->global[d];
  const std::vector<i64>* row = nullptr;
  i64 at = 0;
  for (const auto& [key, i] : order) {
    if (row == nullptr || *row != key.first) at = 0;
    row = &key.first;
    const i64 items = of.pieces[i].sizes[d];
    if (items > size - at) {
      wrong = cat("the ranks hold more than the ", size, " items that there are along dimension ", d);
      return out;
    }
    out[i].push_back({at, at + items});
    at += items;
  }
  return out;
}

// Where all pieces are along dimension d. Returns what is wrong, or "".
std::string place_along(const Placed& of, std::size_t d, bool all_there, TorchStretches& out) {
  const TorchSharding& s = *of.pieces[0].sharding;
  const std::vector<Cuts> all = readings(s, static_cast<int>(d));
  if (all[0].empty())
    for (const TorchPiece& p : of.pieces)
      if (p.sizes[d] != s.global[d])
        return cat("rank ", p.rank, " holds ", p.sizes[d], " of ", s.global[d], " along dimension ", d,
                   ", which is not sharded");
  std::optional<TorchStretches> found;
  for (const Cuts& cuts : all) {
    std::optional<TorchStretches> fits = by_reading(of, cuts, d);
    if (fits && found && *fits != *found)
      return cat("the placements can be read in two ways along dimension ", d,
                 ", and the sizes of the pieces fit both");
    if (fits) found = std::move(fits);
  }
  std::string wrong;
  if (!found && all.size() == 1 && is_plain(all[0]) && all_there) found = by_sizes(of, all[0], d, wrong);
  if (found) out = std::move(*found);
  if (found) return wrong;
  if (!all_there)
    return cat("the tensor is of ", counted(std::ssize(s.mesh->ranks), "rank"), ", of which ",
               of.pieces.size(), " are there, and uneven pieces do not say where they begin");
  std::vector<std::string> sizes;
  for (const TorchPiece& p : of.pieces) sizes.push_back(cat(p.sizes[d]));
  return cat("the pieces are not of the sizes that the placements say along dimension ", d, ", of ",
             s.global[d], " items: ", listed(sizes, 8));
}

// Places the pieces that the ranks of one mesh have.
std::string place_in_mesh(std::span<TorchPiece> pieces) {
  const TorchSharding& s = *pieces[0].sharding;
  Placed of{pieces, {}};
  for (const TorchPiece& p : pieces) {
    std::optional<std::vector<i64>> place = mesh_place(*s.mesh, p.rank);
    if (!place) return cat("rank ", p.rank, " is not in the tensor's device mesh");
    of.places.push_back(std::move(*place));
  }
  std::vector<TorchStretches> all(pieces.size(), TorchStretches(s.global.size()));
  for (std::size_t d = 0; d < s.global.size(); d++) {
    TorchStretches along;
    std::string wrong = place_along(of, d, pieces.size() == s.mesh->ranks.size(), along);
    if (!wrong.empty()) return wrong;
    for (std::size_t i = 0; i < pieces.size(); i++) all[i][d] = std::move(along[i]);
  }
  for (std::size_t i = 0; i < pieces.size(); i++) {
    std::size_t boxes = 1;
    for (const std::vector<ItemRange>& along : all[i])
      if (boxes *= std::max<std::size_t>(1, along.size()); boxes > kMostBoxes)
        return cat("a piece of the tensor is in more than ", kMostBoxes, " places");
    place_at(pieces[i], std::move(all[i]));
  }
  return "";
}

}  // namespace

void place_at(TorchPiece& piece, TorchStretches stretches) {
  piece.offsets.clear();
  for (const std::vector<ItemRange>& along : stretches) piece.offsets.push_back(along[0].begin);
  const bool is_box = std::ranges::all_of(stretches, [](const auto& along) { return along.size() == 1; });
  piece.stretches = is_box ? TorchStretches{} : std::move(stretches);
}

std::vector<TorchStore::Piece> store_pieces(const TorchPiece& piece, i32 file, i64 row) {
  if (piece.stretches.empty()) return {{file, row, piece.offsets, piece.replica}};
  std::vector<TorchStore::Piece> out = {{file, row, {}, piece.replica}};
  for (const std::vector<ItemRange>& along : piece.stretches) {
    std::vector<TorchStore::Piece> longer;
    for (const TorchStore::Piece& box : out) {
      i64 begin = 0;
      for (ItemRange r : along) {
        TorchStore::Piece& next = longer.emplace_back(box);
        next.offsets.push_back(r.begin);
        next.begin.push_back(begin);
        next.sizes.push_back(r.items());
        begin += r.items();
      }
    }
    out = std::move(longer);
  }
  return out;
}

std::vector<i64> place_of(const TorchPiece& piece) {
  std::vector<i64> out = piece.offsets;
  out.insert(out.end(), piece.sizes.begin(), piece.sizes.end());
  for (const std::vector<ItemRange>& along : piece.stretches)
    for (ItemRange r : along) out.insert(out.end(), {r.begin, r.end});
  return out;
}

void mark_replicas(std::span<TorchPiece> pieces) {
  std::set<std::vector<i64>> seen;
  for (TorchPiece& p : pieces) p.replica = !seen.insert(place_of(p)).second;
}

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
    for (std::size_t i = 0; i < row.size(); i++) pieces[indices[i]] = std::move(row[i]);
  }
  mark_replicas(pieces);
  return "";
}

std::optional<TorchStretches> even_stretches(const TorchSharding& s, i64 rank, std::span<const i64> sizes) {
  const std::optional<std::vector<i64>> place = mesh_place(*s.mesh, rank);
  if (!place) return std::nullopt;
  TorchStretches out;
  for (std::size_t d = 0; d < s.global.size(); d++) {
    std::optional<std::vector<ItemRange>> found;
    for (const Cuts& cuts : readings(s, static_cast<int>(d))) {
      std::optional<std::vector<ItemRange>> part = part_of(*s.mesh, cuts, s.global[d], *place);
      if (!part || items_of(*part) != sizes[d]) continue;
      if (found && *found != *part) return std::nullopt;
      found = std::move(part);
    }
    if (!found) return std::nullopt;
    out.push_back(std::move(*found));
  }
  return out;
}

}  // namespace mckpt::impl
