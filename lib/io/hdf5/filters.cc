// Undoes the filters of HDF5 chunks, the last one first.
#include "io/hdf5/filters.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/bytes.h"
#include "io/hdf5/answer.h"
#include "io/zip/inflate.h"

namespace mckpt::impl {
namespace {

constexpr i64 kDeflate = 1, kShuffle = 2, kFletcher32 = 3;
constexpr i64 kSumBytes = sizeof(u32);

// Filters that are registered with the HDF Group and used in practice; named in errors.
struct Known {
  i64 id;
  std::string_view name;
};
constexpr Known kOthers[] = {{4, "szip"},      {5, "n-bit"},     {6, "scale-offset"},   {32000, "lzf"},
                             {32001, "blosc"}, {32004, "lz4"},   {32008, "bitshuffle"}, {32013, "zfp"},
                             {32015, "zstd"},  {32026, "blosc2"}};

std::string_view other_name(i64 id) {
  for (const Known& k : kOthers)
    if (k.id == id) return k.name;
  return "unknown";
}

// A writer may skip a filter for one chunk, as deflate where it would not make it smaller.
bool applied(i64 skipped, std::size_t filter) { return (skipped >> filter & 1) == 0; }

[[noreturn]] void throw_bad(std::string message) { throw Error(Code::kBadHdf5, std::move(message)); }

// Checks and removes the 4 bytes at the end.
std::vector<u8> without_sum(std::vector<u8> stored) {
  if (stored.size() < kSumBytes) throw_bad("a chunk is shorter than its checksum");
  std::span<const u8> data = std::span(stored).first(stored.size() - kSumBytes);
  u32 kept = load_le<u32>(stored.data() + data.size());
  if (u32 sum = fletcher32(data); sum != kept) throw_bad("the fletcher32 checksum of a chunk does not match");
  stored.resize(data.size());
  return stored;
}

// All first bytes of the elements are stored, then all second ones, and so on (which compresses better);
// bytes that do not fill an element are at the end, unchanged.
std::vector<u8> unshuffled(const std::vector<u8>& stored, i64 width) {
  std::size_t w = static_cast<std::size_t>(width), elements = stored.size() / w;
  std::vector<u8> out(stored.size());
  for (std::size_t b = 0; b < w; b++)
    for (std::size_t i = 0; i < elements; i++) out[i * w + b] = stored[b * elements + i];
  std::copy(stored.begin() + static_cast<std::ptrdiff_t>(w * elements), stored.end(),
            out.begin() + static_cast<std::ptrdiff_t>(w * elements));
  return out;
}

std::vector<u8> inflated_chunk(const std::vector<u8>& stored, i64 bytes) {
  std::optional<std::vector<u8>> out = zlib_inflated(stored, bytes);
  if (!out) throw_bad(cat("a chunk does not inflate to its ", bytes, " bytes"));
  return std::move(*out);
}

}  // namespace

void check_filters(std::span<const Hdf5Filter> filters) {
  i64 seen = 0;
  for (const Hdf5Filter& f : filters) {
    if (f.id != kDeflate && f.id != kShuffle && f.id != kFletcher32)
      throw Error(Code::kUnsupportedHdf5, cat("the data were packed by filter ", f.id, " (", other_name(f.id),
                                              "), which mckpt does not have"))
          .expected("deflate (1), shuffle (2), fletcher32 (3) or no filter")
          .help("h5repack -f GZIP=4 IN OUT writes the file with a filter that mckpt has");
    if (seen >> f.id & 1) throw Error(Code::kUnsupportedHdf5, cat("filter ", f.id, " is applied twice"));
    if (f.id == kShuffle && (f.parameter < 1 || f.parameter > 1024))
      throw_bad("the shuffle filter gives no size of elements");
    seen |= i64{1} << f.id;
  }
}

i64 exact_stored_bytes(std::span<const Hdf5Filter> filters, i64 skipped, i64 bytes) {
  for (std::size_t i = 0; i < filters.size(); i++) {
    if (!applied(skipped, i)) continue;
    if (filters[i].id == kDeflate) return -1;
    if (filters[i].id == kFletcher32) bytes = checked_add(bytes, kSumBytes, "the size of a chunk");
  }
  return bytes;
}

std::vector<u8> unfiltered(std::vector<u8> stored, std::span<const Hdf5Filter> filters, i64 skipped,
                           i64 bytes) {
  for (std::size_t i = filters.size(); i-- > 0;) {
    if (!applied(skipped, i)) continue;
    if (filters[i].id == kFletcher32) {
      stored = without_sum(std::move(stored));
    } else if (filters[i].id == kShuffle) {
      stored = unshuffled(stored, filters[i].parameter);
    } else {
      stored = inflated_chunk(stored, exact_stored_bytes(filters.first(i), skipped, bytes));
    }
  }
  if (static_cast<i64>(stored.size()) != bytes)
    throw_bad("a chunk does not have the size that its dataset says");
  return stored;
}

// Two sums modulo 65535, folded only every 360 pairs, which is as many as fit 32 bits.
u32 fletcher32(std::span<const u8> bytes) {
  u32 low = 0, high = 0;
  auto fold = [](u32 v) { return (v & 0xffff) + (v >> 16); };
  for (std::size_t i = 0; i < bytes.size();) {
    // As many sums as fit 32 bits.
    std::size_t end = std::min(bytes.size(), i + 720);
    for (; i < end; i += 2) {
      low += static_cast<u32>(bytes[i]) << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0u);
      high += low;
    }
    low = fold(low);
    high = fold(high);
  }
  return fold(high) << 16 | fold(low);
}

}  // namespace mckpt::impl
