#include "convert/compare_sink.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "io/copy_worker.h"

namespace mckpt {
namespace {

constexpr i64 kPiece = 256 << 10, kPage = 4096;

}  // namespace

void CompareSink::write(i32 file, i64 offset, std::span<const u8> bytes) {
  thread_local Arena arena;
  u8* buffer = arena.reserve(kPiece + kPage);
  const ByteSource& there = bytes_[file];
  for (i64 at = 0, size = std::ssize(bytes); at < size;) {
    i64 n = std::min(kPiece - (offset + at) % kPage, size - at);
    // Where the kernel's pages and ours lie alike it copies several times faster.
    u8* mine = buffer + (offset + at) % kPage;
    there.read(offset + at, {mine, static_cast<std::size_t>(n)});
    if (std::memcmp(mine, bytes.data() + at, static_cast<std::size_t>(n)) != 0) {
      auto differs = std::mismatch(mine, mine + n, bytes.begin() + at);
      std::lock_guard lock(mutex_);
      if (differences_.size() < kMost)
        differences_.push_back({file, offset + at + (differs.first - mine), offset + at + n});
    }
    at += n;
  }
}

std::vector<CompareSink::Difference> CompareSink::differences() {
  std::lock_guard lock(mutex_);
  std::ranges::sort(differences_, {}, [](const Difference& d) { return std::tuple(d.file, d.offset); });
  return std::move(differences_);
}

}  // namespace mckpt
