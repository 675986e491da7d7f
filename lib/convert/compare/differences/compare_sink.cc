// Compares each written stretch with the same stretch of the existing file, in pieces of 256 KiB. Equal
// pieces, nearly all, cost a read and a memcmp; a piece that differs is attributed to its tensors.
#include "convert/compare/differences/compare_sink.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "convert/compare/differences/counting.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "io/copy/worker.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPiece = 256 << 10, kPage = ByteSource::kPage;

bool is_before(const CompareSink::Difference& a, const CompareSink::Difference& b) {
  return std::tuple(a.file, a.offset) < std::tuple(b.file, b.offset);
}

}  // namespace

void CompareSink::write(i32 file, i64 offset, std::span<const u8> bytes) {
  Spare<Arena>::Loan arena(buffers_);
  u8* buffer = arena->reserve(kPiece + kPage);
  for (i64 at = 0, size = std::ssize(bytes); at < size;) {
    i64 n = std::min(kPiece - (offset + at) % kPage, size - at);
    // The buffer has the file's offset within a page: the kernel then copies whole pages, several times
    // faster.
    u8* mine = buffer + (offset + at) % kPage;
    std::span<u8> found(mine, static_cast<std::size_t>(n));
    bytes_.read(file, offset + at, found);
    if (std::memcmp(mine, &bytes[static_cast<std::size_t>(at)], found.size()) != 0)
      add(file, {offset, bytes}, {offset + at, found});
    at += n;
  }
}

bool CompareSink::wants(i32 file, i64 offset, i64 bytes) {
  if (places_ == Places::kFirst) return true;
  std::lock_guard lock(mutex_);
  if (of_key_.empty()) return true;
  if (places_ == Places::kOne) return false;
  bool wanted = false;
  extents_->each(file, offset, offset + bytes, [&](const ChunkExtents::Extent& e) {
    // Items of less than a byte are not counted.
    wanted |= !of_key_.contains(chunks_.key(e.chunk)) || dtype_info(e.dtype).bits % 8 != 0;
  });
  return wanted;
}

std::span<const u8> CompareSink::Stretch::part(i64 from, i64 to) const {
  return bytes.subspan(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from));
}

// The place of the first byte of a chunk's part of `found` that differs; -1: none. pre: they overlap.
i64 CompareSink::first_difference(const ChunkExtents::Extent& e, const Stretch& written,
                                  const Stretch& found) const {
  i64 from = std::max(e.begin, found.offset), to = std::min(e.end, found.end());
  std::span<const u8> there = found.part(from, to);
  std::vector<u8> items;
  if (is_rounded(e)) {
    // Jobs write whole items, of which a piece may end in the middle.
    const i64 item = dtype_bytes(e.dtype, 1);
    const i64 first = e.begin + (from - e.begin) / item * item;
    const i64 last = e.begin + (to - e.begin + item - 1) / item * item;
    if (first >= written.offset && last <= written.end()) {
      from = first, to = last;
      items.resize(static_cast<std::size_t>(to - from));
      bytes_.read(e.file, from, items);
      adopt_nans(e.dtype, written.part(from, to), items);
      there = items;
    }
  }
  std::span<const u8> expected = written.part(from, to);
  auto at = std::ranges::mismatch(there, expected).in1;
  return at == there.end() ? -1 : from + (at - there.begin());
}

// Attributes the differences of a stretch to tensors. The stretch may contain items of many tensors, and each
// gets its own first difference.
void CompareSink::add(i32 file, const Stretch& written, const Stretch& found) {
  std::lock_guard lock(mutex_);
  if (!extents_) extents_ = std::make_unique<const ChunkExtents>(chunks_);
  bool known = false;
  extents_->each(file, found.offset, found.end(), [&](const ChunkExtents::Extent& e) {
    i64 at = first_difference(e, written, found);
    known |= at >= 0 || is_rounded(e);
    if (at < 0) return;
    const i64 bits = dtype_info(e.dtype).bits;
    Difference here{chunks_.key(e.chunk), file, at, bits < 8 ? -1 : (at - e.begin) * 8 / bits};
    auto [known_here, added] = of_key_.try_emplace(here.key, here);
    if (!added && is_before(here, known_here->second)) known_here->second = here;
  });
  if (!known) throw Error(Code::kInternal, "bytes that belong to no tensor differ").offset(found.offset);
}

std::vector<CompareSink::Difference> CompareSink::differences() const {
  std::vector<Difference> out;
  for (const auto& [key, difference] : of_key_) out.push_back(difference);
  std::ranges::sort(out, is_before);
  return out;
}

std::string text_of(const CompareSink::Difference& difference, i64 offset) {
  if (difference.item >= 0)
    return cat("the tensor differs from item ", difference.item, " of this file's part of it on");
  return cat("the tensor differs", offset < 0 ? "" : cat(" from byte ", offset, " of the file on"),
             ": items smaller than a byte are not counted, and no tolerance applies to them");
}

}  // namespace mckpt::impl
