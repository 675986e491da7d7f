// Inflates with zlib, never beyond the size that is expected: a stream of a few kilobytes can inflate to
// gigabytes.
#include "io/zip/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "core/base/text.h"
#include "io/zip/zip_end.h"

namespace mckpt::impl {
namespace {

constexpr i64 kStep = i64{1} << 20;
// The most bytes that one byte of a deflated stream can become.
constexpr i64 kMostDeflated = 1032;  // bytes that one byte of a deflated stream can stand for

struct EndStream {
  void operator()(z_stream* z) const { ::inflateEnd(z); }
};

// Nothing if the stream does not give exactly `bytes` bytes. `window_bits`: zlib's way to say which frame
// there is.
std::optional<std::vector<u8>> inflate(std::span<const u8> stream, i64 bytes, int window_bits) {
  z_stream z{};
  if (bytes / kMostDeflated > static_cast<i64>(stream.size())) return {};
  if (::inflateInit2(&z, window_bits) != Z_OK) throw std::bad_alloc();
  std::unique_ptr<z_stream, EndStream> guard(&z);
  std::vector<u8> out;
  out.reserve(static_cast<std::size_t>(bytes) +
              1);  // at once: growing would copy, in up to thrice the memory
  i64 done = 0;
  int status = Z_OK;
  std::size_t at = 0;
  while (status == Z_OK) {
    if (z.avail_in == 0) {
      std::size_t take = std::min<std::size_t>(stream.size() - at, UINT32_MAX);
      z.next_in = const_cast<u8*>(stream.data() + at);  // zlib's old interface; it does not write there
      z.avail_in = static_cast<uInt>(take);
      at += take;
    }
    // One byte more than declared, so that a stream that goes on is seen.
    std::size_t room = static_cast<std::size_t>(std::min(kStep, bytes + 1 - done));
    out.resize(static_cast<std::size_t>(done) + room);
    z.next_out = out.data() + done;
    z.avail_out = static_cast<uInt>(room);
    status = ::inflate(&z, Z_NO_FLUSH);
    done += static_cast<i64>(room - z.avail_out);
    if (done > bytes) break;
  }
  if (done != bytes || status != Z_STREAM_END) return {};
  out.resize(static_cast<std::size_t>(bytes));
  return out;
}

}  // namespace

std::vector<u8> inflated(std::span<const u8> stream, i64 bytes, i64 offset) {
  std::optional<std::vector<u8>> out = inflate(stream, bytes, -MAX_WBITS);
  if (!out)
    throw_bad_zip(cat("a compressed record does not inflate to its declared size of ", bytes, " bytes"),
                  offset);
  return std::move(*out);
}

std::optional<std::vector<u8>> zlib_inflated(std::span<const u8> stream, i64 bytes) {
  return inflate(stream, bytes, MAX_WBITS);
}

}  // namespace mckpt::impl
