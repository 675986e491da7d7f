// Reads frames: their headers, blocks and checksums.
#include "io/zstd/zstd.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/zstd/block.h"

namespace mckpt::impl {
namespace {

constexpr u32 kMagic = 0xfd2fb528, kSkippable = 0x184d2a50;
constexpr std::size_t kMostBlock = std::size_t{128} << 10;

// ---- XXH64, of which a frame stores the lower half

constexpr u64 kPrimes[] = {0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63,
                           0x27d4eb2f165667c5};

u64 xxh_round(u64 sum, u64 input) { return std::rotl(sum + input * kPrimes[1], 31) * kPrimes[0]; }

u64 xxh64(std::span<const u8> bytes) {
  const u8* at = bytes.data();
  const u8* end = at + bytes.size();
  u64 sum = kPrimes[4];
  if (bytes.size() >= 32) {
    u64 sums[] = {kPrimes[0] + kPrimes[1], kPrimes[1], 0, 0 - kPrimes[0]};
    for (; end - at >= 32; at += 32)
      for (int i = 0; i < 4; i++) sums[i] = xxh_round(sums[i], load_le<u64>(at + 8 * i));
    sum = std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) + std::rotl(sums[3], 18);
    for (u64 s : sums) sum = (sum ^ xxh_round(0, s)) * kPrimes[0] + kPrimes[3];
  }
  sum += bytes.size();
  for (; end - at >= 8; at += 8)
    sum = std::rotl(sum ^ xxh_round(0, load_le<u64>(at)), 27) * kPrimes[0] + kPrimes[3];
  if (end - at >= 4) {
    sum = std::rotl(sum ^ load_le<u32>(at) * kPrimes[0], 23) * kPrimes[1] + kPrimes[2];
    at += 4;
  }
  for (; at < end; at++) sum = std::rotl(sum ^ *at * kPrimes[4], 11) * kPrimes[0];
  sum = (sum ^ sum >> 33) * kPrimes[1];
  sum = (sum ^ sum >> 29) * kPrimes[2];
  return sum ^ sum >> 32;
}

// ---- Frames

class Stream {
 public:
  explicit Stream(std::span<const u8> bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }
  std::span<const u8> take(std::size_t bytes) {
    if (bytes > rest_.size()) throw_bad_zstd("the stream ends within a frame");
    std::span<const u8> out = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return out;
  }
  u64 number(std::size_t bytes) {
    u64 out = 0;
    std::span<const u8> from = take(bytes);
    for (std::size_t i = bytes; i-- > 0;) out = out << 8 | from[i];
    return out;
  }

 private:
  std::span<const u8> rest_;
};

struct FrameHeader {
  bool has_size = false, has_sum = false;
  u64 size = 0;
};

FrameHeader read_header(Stream& in) {
  const u64 head = in.number(1);
  const std::size_t size_form = head >> 6, dictionary_form = head & 3;
  const bool one_segment = (head & 0x20) != 0;
  if ((head & 8) != 0) throw_bad_zstd("a frame uses a form that is reserved");
  FrameHeader out;
  out.has_sum = (head & 4) != 0;
  if (!one_segment) in.take(1);  // the size of the window, of which a whole frame in memory needs nothing
  if (in.number(dictionary_form == 3 ? 4 : dictionary_form) != 0)
    throw_bad_zstd("a frame needs a dictionary");
  const std::size_t size_bytes = size_form == 0 ? one_segment : std::size_t{1} << size_form;
  out.has_size = size_bytes > 0;
  out.size = in.number(size_bytes) + (size_bytes == 2 ? 256 : 0);
  return out;
}

void read_frame(Stream& in, std::vector<u8>& out, i64 most_bytes) {
  const FrameHeader header = read_header(in);
  ZstdBlocks blocks(out, most_bytes);
  for (bool last = false; !last;) {
    const u64 head = in.number(3);
    const std::size_t bytes = head >> 3;
    last = (head & 1) != 0;
    if (bytes > kMostBlock) throw_bad_zstd("a block is larger than allowed");
    switch (head >> 1 & 3) {
      case 0:
        blocks.raw(in.take(bytes));
        break;
      case 1:
        blocks.repeated(in.take(1)[0], bytes);
        break;
      case 2:
        blocks.compressed(in.take(bytes));
        break;
      default:
        throw_bad_zstd("a block uses a form that is reserved");
    }
  }
  if (header.has_size && header.size != blocks.content().size())
    throw_bad_zstd("a frame has another size than it says");
  if (!header.has_sum) return;
  const u64 stored = in.number(4), found = xxh64(blocks.content()) & 0xffffffff;
  if (stored != found)
    throw Error(Code::kBadChecksum, "the checksum (XXH64) of a Zstandard frame does not match its content")
        .expected(stored)
        .found(found);
}

}  // namespace

void throw_bad_zstd(const char* what) {
  throw Error(Code::kItemMismatch, cat("the record is compressed with Zstandard, and cannot be read: ", what))
      .help("copy or download the file again");
}

std::vector<u8> unpack_zstd(std::span<const u8> bytes, i64 most_bytes) {
  Stream in(bytes);
  std::vector<u8> out;
  out.reserve(static_cast<std::size_t>(std::min<i64>(most_bytes, 2 * std::ssize(bytes))));
  if (in.at_end()) throw_bad_zstd("the stream is empty");
  while (!in.at_end()) {
    const u32 magic = static_cast<u32>(in.number(4));
    if (magic == kMagic)
      read_frame(in, out, most_bytes);
    else if ((magic & ~u32{15}) == kSkippable)
      in.take(in.number(4));
    else
      throw_bad_zstd("a frame does not begin as one");
  }
  return out;
}

}  // namespace mckpt::impl
