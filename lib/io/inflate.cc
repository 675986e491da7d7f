#include "io/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "io/zip_end.h"

namespace mckpt {
namespace {

constexpr i64 kStep = i64{1} << 20;

struct EndStream {
  void operator()(z_stream* z) const { ::inflateEnd(z); }
};

}  // namespace

std::vector<u8> inflated(std::span<const u8> stream, i64 bytes, i64 offset) {
  z_stream z{};
  if (::inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  std::unique_ptr<z_stream, EndStream> guard(&z);
  std::vector<u8> out;
  int status = Z_OK;
  std::size_t at = 0;
  while (status == Z_OK) {
    if (z.avail_in == 0) {
      std::size_t take = std::min<std::size_t>(stream.size() - at, UINT32_MAX);
      z.next_in = const_cast<u8*>(stream.data() + at);  // zlib's old interface; it does not write there
      z.avail_in = static_cast<uInt>(take);
      at += take;
    }
    std::size_t done = out.size();
    // One byte more than declared, so that a stream that goes on is seen.
    out.resize(done + static_cast<std::size_t>(std::min(kStep, bytes + 1 - static_cast<i64>(done))));
    z.next_out = out.data() + done;
    z.avail_out = static_cast<uInt>(out.size() - done);
    status = ::inflate(&z, Z_NO_FLUSH);
    out.resize(out.size() - z.avail_out);
    if (static_cast<i64>(out.size()) > bytes) break;
  }
  if (static_cast<i64>(out.size()) != bytes || (status != Z_STREAM_END))
    throw_bad_zip(cat("a compressed record does not inflate to its declared size of ", bytes, " bytes"),
                  offset);
  return out;
}

}  // namespace mckpt
