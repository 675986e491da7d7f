// Compares item by item where bytes differ. Every write is counted by itself, without a lock, and kept until
// the last one of its tensor.
#include "convert/compare/differences/item_tally.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "convert/compare/differences/counting.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"
#include "io/values/element.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPiece = 256 << 10;  // a multiple of the bytes of every item

}  // namespace

ItemTally::ItemTally(const Store& there, const ChunkList& chunks, Within within, Rounded rounded)
    : chunks_(chunks),
      bytes_(there, chunks),
      extents_(chunks),
      within_(std::move(within)),
      rounded_(std::move(rounded)) {
  for (i64 c = 0; c < chunks.size(); c++) pieces_[chunks.key(c)].items_left += chunks.items(c);
}

const DistanceMeter& ItemTally::meter(DType dtype) {
  std::lock_guard lock(mutex_);
  return meters_.try_emplace(dtype, dtype).first->second;
}

void ItemTally::write(i32 file, i64 offset, std::span<const u8> bytes) {
  Spare<std::vector<u8>>::Loan loan(buffers_);
  std::vector<u8>& there = *loan;
  i64 end = offset + std::ssize(bytes);
  extents_.each(file, offset, end, [&](const ChunkExtents::Extent& e) {
    if (dtype_info(e.dtype).bits % 8 != 0) return;
    i64 item = dtype_bytes(e.dtype, 1);
    // Jobs write whole items; a part of an item at either end would be skipped.
    i64 begin = (std::max(offset, e.begin) - e.begin + item - 1) / item * item + e.begin;
    for (i64 stop = std::min(end, e.end); begin + item <= stop;) {
      i64 n = std::min(kPiece, (stop - begin) / item * item);
      there.resize(static_cast<std::size_t>(n));
      bytes_.read(file, begin, there);
      std::span<const u8> mine = bytes.subspan(static_cast<std::size_t>(begin - offset), there.size());
      if (rounded_ && rounded_(chunks_.key(e.chunk))) adopt_nans(e.dtype, mine, there);
      compare(e, (begin - e.begin) / item, mine, there);
      begin += n;
    }
  });
}

// `first`: the number in the chunk of the first item in the bytes.
void ItemTally::compare(const ChunkExtents::Extent& e, i64 first, std::span<const u8> expected,
                        std::span<const u8> found) {
  const i32 key = chunks_.key(e.chunk);
  const DistanceMeter& by = meter(e.dtype);
  Count here;
  const Tolerance within = within_ ? within_(key) : Tolerance{};
  StretchCount counted = count_differences(by, found, expected, within);
  // Without a tolerance items are equal bit by bit: another sign of zero and another NaN are differences.
  if (within.none() && counted.distance) counted.distance->beyond = counted.distance->differing;
  if (counted.items > 0) note_first(e, first, expected, found, here);
  add(e, first, std::ssize(found) / dtype_bytes(e.dtype, 1), counted, std::move(here));
}

// `here`: the first difference of the piece, if it has one.
void ItemTally::add(const ChunkExtents::Extent& e, i64 first, i64 items, const StretchCount& counted,
                    Count here) {
  const i32 key = chunks_.key(e.chunk);
  std::lock_guard lock(mutex_);
  Pieces& pieces = pieces_[key];
  if (pieces.items_left <= 0 || !pieces.seen.try_emplace({e.chunk, first}, counted).second) return;
  Count& all = counts_[key];
  if (counted.items > 0 && (all.file < 0 || here.index < all.index)) all = std::move(here);
  if ((pieces.items_left -= items) <= 0) add_up(key, pieces);
}

void ItemTally::add_up(i32 key, Pieces& pieces) {
  Count& all = counts_[key];
  for (const auto& [place, piece] : pieces.seen) {
    all.items += piece.items;
    if (all.distance && piece.distance)
      all.distance->merge(*piece.distance);
    else if (piece.distance)
      all.distance = piece.distance;
  }
  pieces = {};
}

const std::map<i32, ItemTally::Count>& ItemTally::counts() {
  for (auto& [key, pieces] : pieces_)
    if (!pieces.seen.empty()) add_up(key, pieces);
  return counts_;
}

// Notes the first item that differs. pre: there is one.
void ItemTally::note_first(const ChunkExtents::Extent& e, i64 first, std::span<const u8> expected,
                           std::span<const u8> found, Count& here) const {
  i64 at = std::ranges::mismatch(expected, found).in1 - expected.begin();
  i64 bytes = dtype_bytes(e.dtype, 1), item = at / bytes;
  ChunkList::Box box = chunks_.box(e.chunk);
  here.index = item_index(first + item, box.sizes);
  for (std::size_t d = 0; d < here.index.size(); d++) here.index[d] += box.offsets[d];
  here.file = e.file;
  here.offset = e.begin + (first + item) * bytes;
  here.expected = element_text(e.dtype, expected.data(), item);
  here.found = element_text(e.dtype, found.data(), item);
}

std::string difference_text(const Difference& c) {
  std::string text = cat("differs at ", c.at, ": expected ", c.expected, ", found ", c.found, "; ", c.items,
                         c.items == 1 ? " item differs" : " items differ");
  std::optional<double> largest = c.largest();
  if (!largest) return text;
  u8 bytes[sizeof(double)];
  std::memcpy(bytes, &*largest, sizeof bytes);
  return text + cat(", by ", number_text(DType::kF64, bytes, 0), c.items == 1 ? "" : " at most");
}

}  // namespace mckpt::impl
