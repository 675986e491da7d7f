// Packs parameters into a buffer as Megatron-FSDP does. Parameters of at least one chunk begin or end on a
// multiple of the chunk size; the gaps that they leave are filled with smaller ones (fragments):
//
//   |aaaaaaaaaaaaaaaaaaaa.....|   a leaves a gap in its last chunk
//   |aaaaaaaaaaaaaaaaaaaaffgg.|   fragments f and g fit into it
//
// A later large parameter may fill the gap first: it is placed so that it begins with its remainder, which
// ends on the multiple. a has 18 items, b has 16, in chunks of 12:
//
//   |aaaaaaaaaaaa|aaaaaa..bbbb|bbbbbbbbbbbb|
#include "core/fsdp/flat_buffer.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/fsdp/first_fit.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace {

// The least common multiple. Throws kSizeOverflow: rows of many unlike sizes can make it huge.
i64 lcm_items(i64 a, i64 b) { return checked_mul(a / std::gcd(a, b), b, "the chunk size of a bucket"); }

std::size_t index(i64 p) { return static_cast<std::size_t>(p); }

// The sizes of the parameters, not placed yet. Throws kBadLayout for parameters that cannot be packed.
std::vector<PackedParameter> measured(std::span<const Shape> shapes, Engine engine) {
  std::vector<PackedParameter> out;
  out.reserve(shapes.size());
  for (const Shape& shape : shapes) {
    if (shape.items() == 0)
      throw Error(Code::kBadLayout, cat("parameter ", out.size(), " has no items"))
          .expected("at least one item")
          .found(to_string(shape));
    if (shape.rank() == 0 && engine == Engine::kV2)
      throw Error(Code::kBadLayout, cat("parameter ", out.size(), " has no dimensions"))
          .expected("at least one dimension under v2")
          .help("v1 packs it as one item");
    out.push_back({shape.items(), shape.row_items(), 0});
  }
  if (out.empty()) throw Error(Code::kBadLayout, "there are no parameters to pack");
  return out;
}

// v1 does not change the chunk size for parameters smaller than a chunk; its other exceptions are cases in
// which the least common multiple is already the chunk size.
i64 chunk_of_v1(const FlatBuffer& b) {
  i64 chunk = b.parameters[index(b.order[0])].row_items;
  for (i64 id : b.order) {
    const PackedParameter& p = b.parameters[index(id)];
    if (p.items >= chunk) chunk = lcm_items(chunk, p.row_items);
  }
  return chunk;
}

// The least common multiple of all rows, or of blocks of them, so that every boundary of chunks is between
// these.
i64 chunk_of_v2(const FlatBuffer& b, i64 block_rows) {
  i64 chunk = 1;
  for (const PackedParameter& p : b.parameters)
    chunk = lcm_items(chunk, checked_mul(p.row_items, block_rows, "a block of rows"));
  return chunk;
}

// Parameters smaller than a chunk, in the order in which they are tried. v2 begins each of them on a multiple
// of its own row; v1 begins them anywhere, which is why v1 can cut rows.
class Fragments {
 public:
  Fragments(FlatBuffer& b, Engine engine, i64 block_rows) : engine_(engine), block_rows_(block_rows) {
    for (i64 id : b.order)
      if (PackedParameter& p = b.parameters[index(id)]; p.items < b.chunk_items) tried_.push_back(&p);
    if (engine == Engine::kV2)
      std::stable_sort(tried_.begin(), tried_.end(), [](auto* x, auto* y) { return x->items > y->items; });
    std::map<i64, std::vector<std::size_t>> by_alignment;
    for (std::size_t t = 0; t < tried_.size(); t++) by_alignment[align_of(*tried_[t])].push_back(t);
    for (auto& [align, turns] : by_alignment) {
      std::vector<i64> sizes;
      for (std::size_t t : turns) sizes.push_back(tried_[t]->items);
      classes_.push_back({align, std::move(turns), FirstFit(sizes)});
    }
    placed_.resize(tried_.size());
  }

  // Places every fragment in turn that still fits between gap and end.
  void fill(i64 gap, i64 end) {
    for (std::size_t turn = 0; gap < end;) {
      Found next = find(turn, gap, end);
      if (!next.in) return;
      next.in->sizes.take(next.position);
      turn = next.in->turns[next.position];
      gap = place(turn++, gap);
    }
  }

  // Places the rest from `end` on; returns the new end.
  i64 append(i64 end) {
    for (std::size_t turn = 0; turn < tried_.size(); turn++)
      if (!placed_[turn]) end = place(turn, end);
    return end;
  }

 private:
  struct Class {
    i64 align;
    std::vector<std::size_t> turns;  // ascending
    FirstFit sizes;                  // one per turn
  };
  struct Found {
    Class* in = nullptr;
    std::size_t position = 0;
  };

  i64 align_of(const PackedParameter& p) const {
    return engine_ == Engine::kV2 ? p.row_items * block_rows_ : 1;
  }

  // The first fragment from `turn` on that fits between gap and end. Fragments of one alignment would begin
  // at the same place, so only their size decides.
  Found find(std::size_t turn, i64 gap, i64 end) {
    Found best;
    for (Class& c : classes_) {
      i64 room = end - round_up(gap, c.align, "an offset in a bucket");
      auto from = std::lower_bound(c.turns.begin(), c.turns.end(), turn) - c.turns.begin();
      std::size_t at = c.sizes.find(static_cast<std::size_t>(from), room);
      if (at != FirstFit::kNone && (!best.in || c.turns[at] < best.in->turns[best.position])) best = {&c, at};
    }
    return best;
  }

  // Returns where the fragment ends.
  i64 place(std::size_t turn, i64 at) {
    PackedParameter& p = *tried_[turn];
    p.offset = round_up(at, align_of(p), "an offset in a bucket");
    placed_[turn] = true;
    return checked_add(p.offset, p.items, "the size of a bucket");
  }

  Engine engine_;
  i64 block_rows_;
  std::vector<PackedParameter*> tried_;
  std::vector<bool> placed_;    // one per turn
  std::vector<Class> classes_;  // one per alignment
};

// Sets every offset and returns the end of the last parameter. A parameter that does not end on a multiple of
// the chunk size leaves a gap. It is paired with the first later parameter whose own remainder fits into the
// gap: that one is placed so that it begins with its remainder. Fragments fill what is still free.
i64 place_all(FlatBuffer& b, const Packing& how) {
  Fragments fragments(b, how.engine, how.block_rows);
  i64 chunk = b.chunk_items, end = 0;
  std::vector<i64> regular, remainders;
  for (i64 id : b.order) {
    i64 items = b.parameters[index(id)].items;
    if (items < chunk) continue;
    regular.push_back(id);
    remainders.push_back(items % chunk == 0 ? FirstFit::kAbsent : items % chunk);
  }
  FirstFit partners(remainders);
  std::vector<bool> placed(regular.size());
  for (std::size_t i = 0; i < regular.size(); i++) {
    if (placed[i]) continue;
    PackedParameter& p = b.parameters[index(regular[i])];
    p.offset = end;
    i64 rest = p.items % chunk;
    end = checked_add(end, round_up(p.items, chunk, "the size of a bucket"), "the size of a bucket");
    if (rest == 0) continue;
    i64 gap_end = end;
    if (std::size_t j = partners.find(i + 1, chunk - rest); j != FirstFit::kNone) {
      PackedParameter& q = b.parameters[index(regular[j])];
      partners.take(j);
      placed[j] = true;
      q.offset = gap_end = end - q.items % chunk;
      end = checked_add(end, q.items - q.items % chunk, "the size of a bucket");
    }
    fragments.fill(p.end(), gap_end);
  }
  return fragments.append(end);
}

// Throws kBadGrid and kBadLayout for combinations that Megatron-FSDP refuses.
void check(const Packing& how) {
  if (how.ranks <= 0)
    throw Error(Code::kBadGrid, "a bucket is shared by at least one rank")
        .expected("1 or more")
        .found(how.ranks);
  if (how.hsdp <= 0 || how.ranks % how.hsdp != 0)
    throw Error(Code::kBadGrid, "the HSDP instances do not divide the ranks of a bucket")
        .expected(cat("a divisor of ", how.ranks))
        .found(how.hsdp);
  refuse_outer_shard(how);
}

// The shard-th boundary, counted in items of a piece of p and clipped to the piece.
i64 boundary_in(const FlatBuffer& b, const PackedParameter& p, i64 shard, ItemRange piece) {
  return std::clamp(shard * b.shard_items - p.offset, piece.begin, piece.end) - piece.begin;
}

}  // namespace

void refuse_outer_shard(const Packing& how) {
  if (how.hsdp < 2 || how.outer != HsdpOuter::kShard || how.strategy == Strategy::kOptimGradsParams) return;
  Error e(Code::kBadLayout, "only optim_grads_params can be sharded over the HSDP instances as well");
  e.found(strategy_name(how.strategy));
  if (how.engine == Engine::kV2)
    e.note(
        how.strategy == Strategy::kNoShard
            ? "v2 shards the axis of the instances only where it shards the axis inside them too"
            : "v2 changes the placement of one axis at a time, and between sharded main weights and whole weights two axes differ");
  throw e.help("leave out `hsdp_outer`, or choose `strategy` optim_grads_params");
}

// Order, chunk size, places, padding, shards: each step needs the one before.
FlatBuffer pack(std::span<const Shape> shapes, const Packing& how) {
  check(how);
  bool v1 = how.engine == Engine::kV1;
  FlatBuffer b;
  b.parameters = measured(shapes, how.engine);
  b.order.resize(shapes.size());
  std::iota(b.order.begin(), b.order.end(), 0);
  if (v1)
    std::stable_sort(b.order.begin(), b.order.end(), [&](i64 x, i64 y) {
      return b.parameters[index(x)].row_items > b.parameters[index(y)].row_items;
    });
  b.chunk_items = v1 ? chunk_of_v1(b) : chunk_of_v2(b, how.block_rows);
  b.bucket_items = place_all(b, how);
  b.shards = place_of(0, how.ranks, how.hsdp, how.outer).world;
  // v2 pads for every rank of the mesh; v1 for the ranks that hold different shards, and not at all if there
  // are none.
  i64 stripe = checked_mul(v1 ? b.shards : how.ranks, b.chunk_items, "the size of a bucket");
  if (!v1 || how.strategy != Strategy::kNoShard)
    b.bucket_items = round_up(b.bucket_items, stripe, "the size of a bucket");
  b.shard_items = b.bucket_items / b.shards;
  return b;
}

// The boundaries of the shard, clipped to the parameter.
ItemRange item_range(const FlatBuffer& b, i64 p, i64 s) {
  const PackedParameter& param = b.parameters[index(p)];
  ItemRange whole{0, param.items};
  ItemRange range{boundary_in(b, param, s, whole), boundary_in(b, param, s + 1, whole)};
  return range.empty() ? ItemRange{} : range;
}

Rows rows_on_shard(const FlatBuffer& b, i64 p, i64 s) {
  return rows_on_shard(b, p, s, {0, b.parameters[index(p)].items});
}

Rows rows_on_shard(const FlatBuffer& b, i64 p, i64 s, ItemRange piece) {
  const PackedParameter& param = b.parameters[index(p)];
  i64 begin = boundary_in(b, param, s, piece), end = boundary_in(b, param, s + 1, piece);
  for (i64 cut : {begin, end})
    if (cut % param.row_items != 0)
      throw Error(Code::kRowUnaligned,
                  cat("shard ", s, " of ", b.shards, " cuts parameter ", p, " inside a row"))
          .expected(cat("a multiple of ", param.row_items, " items"))
          .found(cat("item ", piece.begin + cut));
  return {begin / param.row_items, (end - begin) / param.row_items};
}

std::optional<i64> unaligned_cut(const FlatBuffer& b, i64 p) {
  const PackedParameter& param = b.parameters[index(p)];
  // Without padding the last shard may end inside the bucket, and that end is a cut too.
  if (param.offset >= b.shards * b.shard_items) return std::nullopt;
  i64 first = param.offset / b.shard_items + 1;
  // Cuts are one shard apart: if the first two are between rows, all are.
  for (i64 s = first; s <= std::min(first + 1, b.shards); s++) {
    i64 cut = s * b.shard_items - param.offset;
    if (cut < param.items && cut % param.row_items != 0) return cut;
  }
  return std::nullopt;
}

bool row_aligned(const FlatBuffer& b) {
  for (i64 p = 0; p < std::ssize(b.parameters); p++)
    if (unaligned_cut(b, p)) return false;
  return true;
}

}  // namespace mckpt::impl
