#include "io/listing/stretches.h"

#include <algorithm>

#include "io/file/crc32.h"
#include "io/file/file.h"

namespace mckpt::impl {
namespace {

constexpr i64 kWindowBytes = 1 << 20;

}  // namespace

u32 sum_bytes(u32 before, const ByteSource& file, i64 begin, i64 end, std::vector<u8>& window,
              const SumProgress& going_on) {
  while (begin < end) {
    const std::size_t bytes = static_cast<std::size_t>(std::min(kWindowBytes, end - begin));
    if (window.size() < bytes) window.resize(bytes);
    const std::span<u8> to = std::span(window).first(bytes);
    file.read(begin, to);
    before = crc32(before, to);
    begin += std::ssize(to);
    if (going_on) going_on(std::ssize(to));
  }
  return before;
}

u32 sum_bytes(u32 before, const ByteSource& file, i64 begin, i64 end, const SumProgress& going_on) {
  std::vector<u8> window;
  return sum_bytes(before, file, begin, end, window, going_on);
}

u32 sum_outside(std::span<const SummedStretch> stretches, const ByteSource& file, i64 bytes,
                const SumProgress& going_on) {
  u32 sum = 0;
  i64 at = 0;
  for (const SummedStretch& s : stretches) {
    if (s.offset > at) sum = sum_bytes(sum, file, at, s.offset, going_on);
    at = std::max(at, s.end());
  }
  return sum_bytes(sum, file, at, bytes, going_on);
}

}  // namespace mckpt::impl
