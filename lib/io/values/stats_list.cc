// Integers are written seven bits a byte, lowest first; the high bit says that more follow.
#include "io/values/stats_list.h"

#include <cstring>
#include <limits>

#include "io/values/tensor_stats.h"

namespace mckpt::impl {
namespace {

// A long double of x86 has ten bytes with numbers in them, and others without.
template <typename T>
constexpr std::size_t kBytesOf = std::numeric_limits<T>::digits == 64 ? 10 : sizeof(T);

class StatsWriter {
 public:
  explicit StatsWriter(std::vector<u8>& to) : to_(to) {}
  void integer(i64 value) {
    u64 left = static_cast<u64>(value);
    for (; left >= 0x80; left >>= 7) to_.push_back(static_cast<u8>(left | 0x80));
    to_.push_back(static_cast<u8>(left));
  }
  template <typename T>
  void number(T value) {
    u8 bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    to_.insert(to_.end(), bytes, bytes + kBytesOf<T>);
  }

 private:
  std::vector<u8>& to_;
};

class StatsReader {
 public:
  explicit StatsReader(const u8* at) : at_(at) {}
  void integer(i64& value) {
    u64 all = 0;
    for (int shift = 0;; shift += 7) {
      all |= static_cast<u64>(*at_ & 0x7f) << shift;
      if (*at_++ < 0x80) break;
    }
    value = static_cast<i64>(all);
  }
  template <typename T>
  void number(T& value) {
    value = 0;
    std::memcpy(&value, at_, kBytesOf<T>);
    at_ += kBytesOf<T>;
  }

 private:
  const u8* at_;
};

// Calls `bytes` for each field but the histogram. First places are written where there is one.
template <typename Bytes, typename Stats>
void each_field(Bytes& bytes, Stats& s) {
  for (auto* n : {&s.numbers, &s.finite, &s.zeros, &s.non_finite.nans, &s.non_finite.infinities})
    bytes.integer(*n);
  if (s.non_finite.nans > 0) bytes.integer(s.non_finite.first_nan);
  if (s.non_finite.infinities > 0) bytes.integer(s.non_finite.first_infinity);
  if (s.finite == 0) return;
  for (auto* n : {&s.min, &s.max, &s.sum_of_squares}) bytes.number(*n);
  for (auto* n : {&s.mean, &s.deviation}) bytes.number(*n);
}

}  // namespace

void StatsList::add(const TensorStats& stats) {
  if (blocks_.empty() || blocks_.back().begins.size() == kInBlock)
    blocks_.emplace_back().begins.reserve(kInBlock);
  Block& block = blocks_.back();
  block.begins.push_back(static_cast<u32>(block.bytes.size()));
  StatsWriter writer(block.bytes);
  each_field(writer, stats);
  writer.integer(std::ssize(stats.histogram));
  for (i64 n : stats.histogram) writer.integer(n);
}

TensorStats StatsList::operator[](std::size_t i) const {
  const Block& block = blocks_[i / kInBlock];
  StatsReader reader(block.bytes.data() + block.begins[i % kInBlock]);
  TensorStats stats;
  each_field(reader, stats);
  i64 bins = 0;
  reader.integer(bins);
  stats.histogram.resize(static_cast<std::size_t>(bins));
  for (i64& n : stats.histogram) reader.integer(n);
  return stats;
}

}  // namespace mckpt::impl
