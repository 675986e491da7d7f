// Compares each written stretch with the same stretch of the existing file, in pieces of 256 KiB. Equal
// pieces, nearly all, cost a read and a memcmp; a piece that differs is attributed to its tensors.
#include "convert/compare/differences/compare_sink.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "convert/keys/stored_chunks.h"
#include "core/base/error.h"
#include "io/copy/worker.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPiece = 256 << 10, kPage = ByteSource::kPage;

bool is_before(const CompareSink::Difference& a, const CompareSink::Difference& b) {
  return std::tuple(a.file, a.offset) < std::tuple(b.file, b.offset);
}

}  // namespace

void CompareSink::write(i32 file, i64 offset, std::span<const u8> bytes) {
  thread_local Arena arena;
  u8* buffer = arena.reserve(kPiece + kPage);
  const ByteSource& there = bytes_[file];
  for (i64 at = 0, size = std::ssize(bytes); at < size;) {
    i64 n = std::min(kPiece - (offset + at) % kPage, size - at);
    // The buffer has the file's offset within a page: the kernel then copies whole pages, several times
    // faster.
    u8* mine = buffer + (offset + at) % kPage;
    std::span<u8> found(mine, static_cast<std::size_t>(n));
    std::span<const u8> expected = bytes.subspan(static_cast<std::size_t>(at), found.size());
    there.read(offset + at, found);
    if (std::memcmp(mine, expected.data(), found.size()) != 0) add(file, offset + at, expected, found);
    at += n;
  }
}

bool CompareSink::wants(i32 file, i64 offset, i64 bytes) {
  if (places_ == Places::kFirst) return true;
  std::lock_guard lock(mutex_);
  if (of_key_.empty()) return true;
  bool wanted = false;
  extents_->each(file, offset, offset + bytes, [&](const ChunkExtents::Extent& e) {
    // Items of less than a byte are not counted.
    wanted |= !of_key_.contains(chunks_.key(e.chunk)) || dtype_info(e.dtype).bits % 8 != 0;
  });
  return wanted;
}

// Attributes the differences of a stretch to tensors. The stretch may contain items of many tensors, and each
// gets its own first difference.
void CompareSink::add(i32 file, i64 offset, std::span<const u8> expected, std::span<const u8> found) {
  std::lock_guard lock(mutex_);
  if (!extents_) extents_ = std::make_unique<const ChunkExtents>(chunks_);
  bool known = false;
  i64 end = offset + std::ssize(found);
  extents_->each(file, offset, end, [&](const ChunkExtents::Extent& e) {
    i64 begin = std::max(e.begin, offset) - offset, stop = std::min(e.end, end) - offset;
    auto first = std::mismatch(found.begin() + begin, found.begin() + stop, expected.begin() + begin).first;
    if (first == found.begin() + stop) return;
    known = true;
    i64 at = offset + (first - found.begin());
    Difference here{chunks_.key(e.chunk), file, at, (at - e.begin) / dtype_bytes(e.dtype, 1)};
    auto [known_here, added] = of_key_.try_emplace(here.key, here);
    if (!added && is_before(here, known_here->second)) known_here->second = here;
  });
  if (!known) throw Error(Code::kInternal, "bytes that belong to no tensor differ").offset(offset);
}

std::vector<CompareSink::Difference> CompareSink::differences() const {
  std::vector<Difference> out;
  for (const auto& [key, difference] : of_key_) out.push_back(difference);
  std::ranges::sort(out, is_before);
  return out;
}

}  // namespace mckpt::impl
