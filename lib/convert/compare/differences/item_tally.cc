// Compares item by item where bytes differ. Every write is counted by itself, without a lock, and then added
// to the count of its tensor.
#include "convert/compare/differences/item_tally.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "convert/keys/stored_chunks.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"
#include "io/values/element.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPiece = 256 << 10;  // a multiple of the bytes of every item

// "1.5", or "(0.5, -1)" of an element that is two numbers.
std::string element_text(DType dtype, const u8* bytes, i64 element) {
  i64 n = element_form(dtype).per_element;
  std::string out;
  for (i64 i = 0; i < n; i++) out += cat(i ? ", " : "", number_text(dtype, bytes, element * n + i));
  return n == 1 ? out : cat("(", out, ")");
}

bool is_float(DType dtype) {
  DTypeKind kind = dtype_info(dtype).kind;
  return kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
}

}  // namespace

ItemTally::ItemTally(const Store& there, const ChunkList& chunks)
    : chunks_(chunks), bytes_(there), extents_(chunks) {}

void ItemTally::write(i32 file, i64 offset, std::span<const u8> bytes) {
  thread_local std::vector<u8> there;
  i64 end = offset + std::ssize(bytes);
  extents_.each(file, offset, end, [&](const ChunkExtents::Extent& e) {
    if (dtype_info(e.dtype).bits % 8 != 0) return;
    i64 item = dtype_bytes(e.dtype, 1);
    // Jobs write whole items; a part of an item at either end would be skipped.
    i64 begin = (std::max(offset, e.begin) - e.begin + item - 1) / item * item + e.begin;
    for (i64 stop = std::min(end, e.end); begin + item <= stop;) {
      i64 n = std::min(kPiece, (stop - begin) / item * item);
      there.resize(static_cast<std::size_t>(n));
      bytes_[file].read(begin, there);
      std::span<const u8> mine = bytes.subspan(static_cast<std::size_t>(begin - offset), there.size());
      if (std::memcmp(mine.data(), there.data(), there.size()) != 0)
        compare(e, (begin - e.begin) / item, mine, there);
      begin += n;
    }
  });
}

// `first`: the number in the chunk of the first item in the bytes.
void ItemTally::compare(const ChunkExtents::Extent& e, i64 first, std::span<const u8> expected,
                        std::span<const u8> found) {
  i64 bytes = dtype_bytes(e.dtype, 1), numbers = element_form(e.dtype).per_element;
  ChunkList::Box box = chunks_.box(e.chunk);
  Count here;
  for (i64 i = 0; i < std::ssize(found) / bytes; i++) {
    std::size_t at = static_cast<std::size_t>(i * bytes);
    if (std::memcmp(&expected[at], &found[at], static_cast<std::size_t>(bytes)) == 0) continue;
    if (here.items++ == 0) {
      here.index = item_index(first + i, box.sizes);
      for (std::size_t d = 0; d < here.index.size(); d++) here.index[d] += box.offsets[d];
      here.file = e.file;
      here.offset = e.begin + (first + i) * bytes;
      here.expected = element_text(e.dtype, expected.data(), i);
      here.found = element_text(e.dtype, found.data(), i);
    }
    for (i64 n = i * numbers; is_float(e.dtype) && n < (i + 1) * numbers; n++) {
      double apart = std::fabs(number_at(e.dtype, expected.data(), n) - number_at(e.dtype, found.data(), n));
      if (std::isfinite(apart)) here.largest = std::max(here.largest.value_or(0), apart);
    }
  }
  std::lock_guard lock(mutex_);
  Count& all = counts_[chunks_.key(e.chunk)];
  i64 items = all.items + here.items;
  std::optional<double> largest = std::max(all.largest, here.largest);
  if (all.items == 0 || here.index < all.index) all = std::move(here);
  all.items = items;
  all.largest = largest;
}

std::string to_string(const ItemTally::Count& c) {
  std::string text = cat("differs at ", dims_to_string(c.index), ": expected ", c.expected, ", found ",
                         c.found, "; ", c.items, c.items == 1 ? " item differs" : " items differ");
  if (!c.largest) return text;
  u8 bytes[sizeof(double)];
  std::memcpy(bytes, &*c.largest, sizeof bytes);
  return text + cat(", by ", number_text(DType::kF64, bytes, 0), c.items == 1 ? "" : " at most");
}

}  // namespace mckpt::impl
