// The tensor is halved along faces of the boxes until a part of it has no box (a hole), is filled by one box,
// is filled by two (an overlap), or is a row of boxes side by side, which one walk decides:
//
//   +---+-----+      +---+|-----+      cut along a face of box b: two halves, each filled by one box or
//   | a |  b  |  ->  | a || b   |      a row of boxes
//   | a +-----+      | a ||-----|
//   | a |  c  |      | a || c   |
//   +---+-----+      +---+|-----+
//
// A face that cuts few boxes is chosen first: the faces of a grid cut none, and real trainers write grids.
#include "core/items/box_cover.h"

#include <algorithm>
#include <bit>

#include "core/base/text.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace {

using Kind = BoxFault::Kind;

// One check. It keeps the part of the tensor that is looked at (lo, hi) and the boxes in it, and recurses
// into halves.
class Cover {
 public:
  Cover(std::span<const i64> extent, std::span<const i64> offsets, std::span<const i64> sizes, i64 count,
        std::size_t most)
      : extent_(extent), offsets_(offsets), sizes_(sizes), count_(count), most_(most) {}

  std::vector<BoxFault> run(i64 effort);

 private:
  using Boxes = std::vector<i64>;  // positions in the list

  int rank() const { return static_cast<int>(extent_.size()); }
  i64 offset(i64 box, int d) const { return offsets_[box * rank() + d]; }
  i64 size(i64 box, int d) const { return sizes_[box * rank() + d]; }
  i64 extent(int d) const { return extent_[d]; }
  // Where the box begins and ends inside the tensor. pre: its size is not negative.
  i64 begin(i64 box, int d) const { return std::clamp<i64>(offset(box, d), 0, extent(d)); }
  i64 end(i64 box, int d) const;
  bool inside(i64 box) const;
  bool has_items(i64 box) const;
  bool fills(i64 box, int d) const { return begin(box, d) <= lo(d) && end(box, d) >= hi(d); }
  bool fills(i64 box) const;

  i64& lo(int d) { return lo_[d]; }
  i64& hi(int d) { return hi_[d]; }
  i64 lo(int d) const { return lo_[d]; }
  i64 hi(int d) const { return hi_[d]; }

  void region(Boxes boxes);
  bool settled(const Boxes& boxes);
  void row(Boxes boxes, int d);
  // A face at which the region may be halved: how many boxes it cuts, and how unequal the halves are.
  struct Cut {
    int dim = -1;
    i64 at = 0, cut = 0, uneven = 0;
  };
  Cut median_cut(const Boxes& boxes, int d);
  void split(const Boxes& boxes, const Cut& cut);

  bool full() const { return faults_.size() >= most_ || work_left_ <= 0; }
  void add(Kind kind, i64 first, i64 second, std::vector<i64> offsets, std::vector<i64> sizes);
  void add_hole();
  void add_overlap(i64 a, i64 b);

  std::span<const i64> extent_, offsets_, sizes_;
  i64 count_;
  std::size_t most_;
  std::vector<i64> lo_, hi_;  // the part of the tensor that is checked
  std::vector<i64> faces_;    // of median_cut, kept for its memory
  i64 work_left_ = 0;         // boxes that may still be looked at
  std::vector<BoxFault> faults_;
};

// Computed without overflow: offset and size come from a file.
i64 Cover::end(i64 box, int d) const {
  i64 o = offset(box, d), n = size(box, d), limit = extent(d);
  if (o < 0) return std::clamp<i64>(o + n, 0, limit);
  return o > limit || n > limit - o ? limit : o + n;
}

// Whether the box is inside the tensor, with no negative number.
bool Cover::inside(i64 box) const {
  for (int d = 0; d < rank(); d++)
    if (offset(box, d) < 0 || size(box, d) < 0 || offset(box, d) > extent(d) ||
        size(box, d) > extent(d) - offset(box, d))
      return false;
  return true;
}

// Whether a part of the box with items is inside the tensor.
bool Cover::has_items(i64 box) const {
  for (int d = 0; d < rank(); d++)
    if (size(box, d) < 0 || begin(box, d) >= end(box, d)) return false;
  return true;
}

// Whether the box covers the whole region that is looked at.
bool Cover::fills(i64 box) const {
  for (int d = 0; d < rank(); d++)
    if (!fills(box, d)) return false;
  return true;
}

// Keeps the first `most_` faults.
void Cover::add(Kind kind, i64 first, i64 second, std::vector<i64> offsets, std::vector<i64> sizes) {
  if (faults_.size() < most_) faults_.push_back({kind, first, second, std::move(offsets), std::move(sizes)});
}

// The region that is looked at, as a hole.
void Cover::add_hole() {
  std::vector<i64> sizes(lo_.size());
  for (std::size_t d = 0; d < lo_.size(); d++) sizes[d] = hi_[d] - lo_[d];
  add(Kind::kHole, -1, -1, lo_, std::move(sizes));
}

// The common box of a and b, once for each pair.
void Cover::add_overlap(i64 a, i64 b) {
  if (a > b) std::swap(a, b);
  for (const BoxFault& f : faults_)
    if (f.kind == Kind::kOverlap && f.first == a && f.second == b) return;
  std::vector<i64> offsets, sizes;
  for (int d = 0; d < rank(); d++) {
    offsets.push_back(std::max(begin(a, d), begin(b, d)));
    sizes.push_back(std::min(end(a, d), end(b, d)) - offsets.back());
  }
  add(Kind::kOverlap, a, b, std::move(offsets), std::move(sizes));
}

// True if boxes that fill the whole region already decide it.
bool Cover::settled(const Boxes& boxes) {
  if (boxes.empty()) {
    add_hole();
    return true;
  }
  i64 filling = -1;
  for (i64 b : boxes) {
    if (!fills(b)) continue;
    if (filling >= 0) {
      add_overlap(filling, b);
      return true;
    }
    filling = b;
  }
  if (filling < 0) return false;
  if (boxes.size() > 1) add_overlap(filling, boxes[0] == filling ? boxes[1] : boxes[0]);
  return true;
}

// Boxes that fill the region in every dimension but d are a row of intervals along d: sorted, each must
// begin where the one before ends.
void Cover::row(Boxes boxes, int d) {
  std::sort(boxes.begin(), boxes.end(),
            [&](i64 a, i64 b) { return begin(a, d) != begin(b, d) ? begin(a, d) < begin(b, d) : a < b; });
  i64 reached = lo(d), owner = -1;
  i64 low = lo(d), high = hi(d);
  auto hole = [&](i64 from, i64 to) {
    lo(d) = from, hi(d) = to;
    add_hole();
    lo(d) = low, hi(d) = high;
  };
  for (i64 b : boxes) {
    if (begin(b, d) > reached) hole(reached, begin(b, d));
    if (begin(b, d) < reached && owner >= 0) add_overlap(owner, b);
    if (end(b, d) > reached) reached = end(b, d), owner = b;
  }
  if (reached < high) hole(reached, high);
}

// The middle one of the faces inside the region in dimension d; dim < 0 if there is none.
Cover::Cut Cover::median_cut(const Boxes& boxes, int d) {
  faces_.clear();
  for (i64 b : boxes) {
    if (begin(b, d) > lo(d)) faces_.push_back(begin(b, d));
    if (end(b, d) < hi(d)) faces_.push_back(end(b, d));
  }
  if (faces_.empty()) return {};
  auto middle = faces_.begin() + static_cast<std::ptrdiff_t>(faces_.size() / 2);
  std::nth_element(faces_.begin(), middle, faces_.end());
  Cut cut{d, *middle, 0, 0};
  for (i64 b : boxes) {
    if (end(b, d) <= cut.at)
      cut.uneven++;
    else if (begin(b, d) >= cut.at)
      cut.uneven--;
    else
      cut.cut++;
  }
  cut.uneven = std::abs(cut.uneven);
  return cut;
}

// A box that the cut divides is in both halves.
void Cover::split(const Boxes& boxes, const Cut& cut) {
  Boxes below, above;
  for (i64 b : boxes) {
    if (begin(b, cut.dim) < cut.at) below.push_back(b);
    if (end(b, cut.dim) > cut.at) above.push_back(b);
  }
  i64 low = lo(cut.dim), high = hi(cut.dim);
  hi(cut.dim) = cut.at;
  region(std::move(below));
  hi(cut.dim) = high, lo(cut.dim) = cut.at;
  region(std::move(above));
  lo(cut.dim) = low;
}

// pre: the region has items, and so has every box in it. The depth is the sum of the logarithms of the faces
// in each dimension.
void Cover::region(Boxes boxes) {
  if (full()) return;
  work_left_ -= static_cast<i64>(boxes.size()) + 1;
  if (settled(boxes)) return;
  Cut best;
  int uneven_dims = 0;
  for (int d = 0; d < rank(); d++) {
    Cut cut = median_cut(boxes, d);
    if (cut.dim < 0) continue;
    uneven_dims++;
    if (best.dim < 0 || cut.cut < best.cut || (cut.cut == best.cut && cut.uneven < best.uneven)) best = cut;
  }
  if (uneven_dims == 1)
    row(std::move(boxes), best.dim);
  else
    split(boxes, best);
}

// Joins holes that the halving cut apart, if together they are a box.
bool joined(BoxFault& a, const BoxFault& b) {
  int differs = -1;
  for (std::size_t d = 0; d < a.offsets.size(); d++) {
    if (a.offsets[d] == b.offsets[d] && a.sizes[d] == b.sizes[d]) continue;
    if (differs >= 0) return false;
    differs = static_cast<int>(d);
  }
  if (differs < 0) return false;
  auto d = static_cast<std::size_t>(differs);
  if (a.offsets[d] + a.sizes[d] != b.offsets[d] && b.offsets[d] + b.sizes[d] != a.offsets[d]) return false;
  a.offsets[d] = std::min(a.offsets[d], b.offsets[d]);
  a.sizes[d] += b.sizes[d];
  return true;
}

// Takes a step for each pair of faults, of which there are few.
void join_holes(std::vector<BoxFault>& faults) {
  for (std::size_t i = 0; i < faults.size(); i++)
    for (std::size_t j = i + 1; j < faults.size(); j++) {
      if (faults[i].kind != Kind::kHole || faults[j].kind != Kind::kHole || !joined(faults[i], faults[j]))
        continue;
      faults.erase(faults.begin() + static_cast<std::ptrdiff_t>(j));
      j = i;  // the larger hole may now touch one that was passed
    }
}

// Boxes outside the tensor are listed first; the parts of them that are inside take part in the check.
std::vector<BoxFault> Cover::run(i64 effort) {
  Boxes boxes;
  for (i64 b = 0; b < count_; b++) {
    if (!inside(b)) {
      auto at = static_cast<std::ptrdiff_t>(b * rank());
      add(Kind::kOutside, b, -1, {offsets_.begin() + at, offsets_.begin() + at + rank()},
          {sizes_.begin() + at, sizes_.begin() + at + rank()});
    }
    if (has_items(b)) boxes.push_back(b);
  }
  if (std::find(extent_.begin(), extent_.end(), 0) != extent_.end()) return std::move(faults_);
  lo_.assign(extent_.size(), 0);
  hi_.assign(extent_.begin(), extent_.end());
  work_left_ = checked_mul(effort * (count_ + 64), std::bit_width(static_cast<u64>(count_)) + rank() + 1,
                           "the work of a proof");
  region(std::move(boxes));
  join_holes(faults_);
  if (work_left_ <= 0) add(Kind::kIrregular, -1, -1, {}, {});
  return std::move(faults_);
}

// True if the boxes are slices of the tensor along one dimension, in order. Most tensors are stored so, and
// the check is cheap.
bool slices(std::span<const i64> extent, std::span<const i64> offsets, std::span<const i64> sizes,
            i64 count) {
  std::size_t rank = extent.size(), sliced = 0;
  if (count < 1 || rank == 0) return false;
  while (sliced + 1 < rank && sizes[sliced] == extent[sliced]) sliced++;
  i64 reached = 0;
  for (std::size_t box = 0; box < static_cast<std::size_t>(count); box++)
    for (std::size_t d = 0; d < rank; d++) {
      i64 offset = offsets[box * rank + d], size = sizes[box * rank + d];
      if (d != sliced ? offset != 0 || size != extent[d]
                      : offset != reached || size < 0 || size > extent[d] - reached)
        return false;
      if (d == sliced) reached += size;
    }
  return reached == extent[sliced];
}

}  // namespace

std::vector<BoxFault> cover_faults(std::span<const i64> extent, std::span<const i64> offsets,
                                   std::span<const i64> sizes, i64 count, std::size_t most, i64 effort) {
  if (slices(extent, offsets, sizes, count)) return {};
  return Cover(extent, offsets, sizes, count, most).run(effort);
}

// A sentence for messages.
std::string to_string(const BoxFault& fault, std::string_view box) {
  std::string where = cat("offsets ", dims_to_string(fault.offsets), ", sizes ", dims_to_string(fault.sizes));
  switch (fault.kind) {
    case Kind::kOutside:
      return cat(box, " ", fault.first, " reaches outside the tensor: ", where);
    case Kind::kHole:
      return cat("a hole: no ", box, " covers ", where);
    case Kind::kOverlap:
      return cat(box, "s ", fault.first, " and ", fault.second, " overlap: ", where);
    case Kind::kIrregular:
      return cat("the ", box,
                 "s cut across each other in too many ways to prove that they cover the tensor once");
  }
  return {};
}

}  // namespace mckpt::impl
