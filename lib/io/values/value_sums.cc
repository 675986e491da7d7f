// Sums stretches of 4,096 numbers with vector instructions and merges the sums. Values that are not summed
// with vectors: 64-bit integers, and doubles whose squared deviations a double cannot hold, are summed in
// long double one by one.
//
// The difficult part is the spread. The textbook formula, mean of squares minus square of the mean, subtracts
// two nearly equal numbers if the mean is large against the spread (weights around 1,000 with a spread of
// 0.001), and most digits are lost. So deviations are taken from a pivot, the first finite number of the
// stretch, and stretches are merged by the formula of Chan, Golub and LeVeque, which has no such difference.
#include "io/values/value_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "io/file/clones.h"

namespace mckpt::impl {
namespace {

// Numbers summed before the sums are merged: long enough to be cheap, short enough that one pivot serves all.
constexpr i64 kStretch = 4096;
constexpr int kLanes = 8;
constexpr int kBlock = 256;
constexpr std::size_t kCodes = 65536;
// Up to so many numbers, only the codes that occurred are looked at afterwards.
constexpr i64 kFewNumbers = 65536;

template <typename T>
bool finite(T v) {
  // Written as a comparison, not std::isfinite, which compilers do not turn into vectors.
  if constexpr (std::is_floating_point_v<T>) return (v < 0 ? -v : v) <= std::numeric_limits<T>::max();
  return true;
}

// Sums number by number, in long double, what doubles do not sum well: integers of 64 bits, and doubles whose
// squared deviations are too large or too small for a double.
template <typename T>
ValueSums sum_one_by_one(const u8* bytes, i64 n) {
  ValueSums s;
  for (i64 i = 0; i < n; i++) {
    const T number = load<T>(bytes, i);
    if (!finite(number)) continue;
    const long double v = static_cast<long double>(number);
    s.min = s.count == 0 ? v : std::min(s.min, v);
    s.max = s.count == 0 ? v : std::max(s.max, v);
    s.count++;
    s.zeros += number == T{0};
    s.sum += v;
    s.sum_of_squares += v * v;
  }
  if (s.count == 0) return s;
  const long double mean = s.mean();
  for (i64 i = 0; i < n; i++)
    if (const T number = load<T>(bytes, i); finite(number)) {
      const long double d = static_cast<long double>(number) - mean;
      s.squared_deviations += d * d;
    }
  return s;
}

// Whether a sum of squares is far enough from the limits of a double that none of its terms
// overflowed or lost its digits.
bool fits_a_double(double squares) { return squares > 1e-280 && squares < 1e300; }

// The sum of the squares of finite numbers, one by one.
template <typename T>
double squares_of(const u8* bytes, i64 begin, i64 end) {
  double sum_of_squares = 0;
  for (i64 i = begin; i < end; i++)
    if (const T v = load<T>(bytes, i); finite(v))
      sum_of_squares += static_cast<double>(v) * static_cast<double>(v);
  return sum_of_squares;
}

// Deviations are taken from a pivot, a number of the stretch, so that a large mean costs no digits. Numbers
// that are not finite become the pivot, which adds nothing. Eight lanes are summed apart: that is what
// vectors do, and it fixes the order of additions. Each loop does one thing, because that is what compilers
// make vectors of.
template <typename T>
[[gnu::always_inline]] inline ValueSums sum_stretch(const u8* bytes, i64 n) {
  i64 first = 0;
  while (first < n && !finite(load<T>(bytes, first))) first++;
  if (first == n) return {};
  const T pivot = load<T>(bytes, first);
  const double origin = static_cast<double>(pivot);
  T low[kLanes], high[kLanes], clean[kBlock];
  double sum[kLanes] = {}, squared_deviations[kLanes] = {}, sum_of_squares[kLanes] = {};
  i64 bad = 0, zeros = 0;
  for (int l = 0; l < kLanes; l++) low[l] = high[l] = pivot;
  for (i64 at = 0; at < n; at += kBlock) {
    const i64 here = std::min<i64>(kBlock, n - at);
    std::memcpy(clean, bytes + at * static_cast<i64>(sizeof(T)), static_cast<std::size_t>(here) * sizeof(T));
    for (i64 i = here; i < kBlock; i++) clean[i] = pivot;
    int block_bad = 0, block_zeros = 0;
    for (int i = 0; i < kBlock; i++) block_bad += !finite(clean[i]);
    for (int i = 0; i < here; i++) block_zeros += clean[i] == T{0};
    if (block_bad > 0)
      for (T& v : clean) v = finite(v) ? v : pivot;
    for (int i = 0; i < kBlock; i += kLanes)
      for (int l = 0; l < kLanes; l++) low[l] = clean[i + l] < low[l] ? clean[i + l] : low[l];
    for (int i = 0; i < kBlock; i += kLanes)
      for (int l = 0; l < kLanes; l++) high[l] = high[l] < clean[i + l] ? clean[i + l] : high[l];
    double block[kLanes] = {};
    for (int i = 0; i < kBlock; i += kLanes)
      for (int l = 0; l < kLanes; l++) {
        double v = static_cast<double>(clean[i + l]), d = v - origin;
        sum[l] += d;
        squared_deviations[l] += d * d;
        block[l] += v * v;
      }
    // A pivot that fills a place adds no deviation, but its square.
    const bool filled = block_bad > 0 || here < kBlock;
    for (int l = 0; l < kLanes; l++) sum_of_squares[l] += filled ? 0 : block[l];
    if (filled) sum_of_squares[0] += squares_of<T>(bytes, at, at + here);
    bad += block_bad;
    zeros += block_zeros;
  }
  for (int l = 1; l < kLanes; l++) {
    low[0] = std::min(low[0], low[l]);
    high[0] = std::max(high[0], high[l]);
    sum[0] += sum[l];
    squared_deviations[0] += squared_deviations[l];
    sum_of_squares[0] += sum_of_squares[l];
  }
  if (low[0] < high[0] && !fits_a_double(squared_deviations[0])) return sum_one_by_one<T>(bytes, n);
  if (sum_of_squares[0] != 0 ? !fits_a_double(sum_of_squares[0]) : zeros < n - bad)
    return sum_one_by_one<T>(bytes, n);
  const double m = static_cast<double>(n - bad);
  return {n - bad,
          zeros,
          static_cast<long double>(low[0]),
          static_cast<long double>(high[0]),
          static_cast<long double>(origin) * m + sum[0],
          std::max(0.0, squared_deviations[0] - sum[0] * sum[0] / m),
          sum_of_squares[0]};
}

MCKPT_CLONES ValueSums stretch_f32(const u8* b, i64 n) { return sum_stretch<float>(b, n); }
MCKPT_CLONES ValueSums stretch_f64(const u8* b, i64 n) { return sum_stretch<double>(b, n); }
MCKPT_CLONES ValueSums stretch_i32(const u8* b, i64 n) { return sum_stretch<i32>(b, n); }
MCKPT_CLONES ValueSums stretch_u32(const u8* b, i64 n) { return sum_stretch<u32>(b, n); }
ValueSums stretch_i64(const u8* b, i64 n) { return sum_one_by_one<i64>(b, n); }
ValueSums stretch_u64(const u8* b, i64 n) { return sum_one_by_one<u64>(b, n); }

using Stretch = ValueSums (*)(const u8*, i64);

Stretch stretch_of(ElementForm::Kind kind) {
  switch (kind) {
    case ElementForm::Kind::kF64:
      return stretch_f64;
    case ElementForm::Kind::kI32:
      return stretch_i32;
    case ElementForm::Kind::kU32:
      return stretch_u32;
    case ElementForm::Kind::kI64:
      return stretch_i64;
    case ElementForm::Kind::kU64:
      return stretch_u64;
    default:
      return stretch_f32;
  }
}

i64 width_of(ElementForm::Kind kind) {
  bool wide =
      kind == ElementForm::Kind::kF64 || kind == ElementForm::Kind::kI64 || kind == ElementForm::Kind::kU64;
  return wide ? 8 : 4;
}

// Bins the finite numbers of a stretch. 64-bit integers are binned by their distance from the minimum, since
// a double cannot tell large neighbours apart.
template <typename T>
void bin_stretch(Bins& bins, std::span<const u8> bytes) {
  i64 n = static_cast<i64>(bytes.size() / sizeof(T));
  for (i64 i = 0; i < n; i++)
    if (T v = load<T>(bytes.data(), i); finite(v)) {
      if constexpr (std::is_integral_v<T> && sizeof(T) == 8)  // neighbours may round to one double
        bins.add_at(static_cast<double>(static_cast<long double>(v) - bins.min) * bins.per_width, 1);
      else
        bins.add(static_cast<double>(v), 1);
    }
}

}  // namespace

// deviations = deviations_a + deviations_b + (mean_b - mean_a)^2 * n_a * n_b / (n_a + n_b)
void ValueSums::merge(const ValueSums& later) {
  if (later.count == 0) return;
  if (count == 0) {
    *this = later;
    return;
  }
  const long double a = static_cast<long double>(count), b = static_cast<long double>(later.count);
  const long double apart = later.mean() - mean();
  squared_deviations += later.squared_deviations + apart * apart * a * b / (a + b);
  sum += later.sum;
  sum_of_squares += later.sum_of_squares;
  count += later.count;
  zeros += later.zeros;
  min = std::min(min, later.min);
  max = std::max(max, later.max);
}

ValueSums sum_numbers(ElementForm::Kind kind, std::span<const u8> bytes) {
  Stretch stretch = stretch_of(kind);
  i64 width = width_of(kind), numbers = static_cast<i64>(bytes.size()) / width;
  ValueSums all;
  for (i64 at = 0; at < numbers; at += kStretch)
    all.merge(stretch(bytes.data() + at * width, std::min(kStretch, numbers - at)));
  return all;
}

Bins::Bins(long double low, long double high, int bins) : min(low), counts(static_cast<std::size_t>(bins)) {
  const long double width = high - low;
  if (!(width > 0)) return;  // the extremes are one number: all of them are in the first bin
  if (width > 1e300L) scale = 0x1p-60;
  if (width < 1e-280L) scale = 0x1p200;
  scaled_min = static_cast<double>(low * scale);
  per_width = bins / static_cast<double>(width * scale);
}

void Bins::add_numbers(ElementForm::Kind kind, std::span<const u8> bytes) {
  switch (kind) {
    case ElementForm::Kind::kF64:
      return bin_stretch<double>(*this, bytes);
    case ElementForm::Kind::kI32:
      return bin_stretch<i32>(*this, bytes);
    case ElementForm::Kind::kU32:
      return bin_stretch<u32>(*this, bytes);
    case ElementForm::Kind::kI64:
      return bin_stretch<i64>(*this, bytes);
    case ElementForm::Kind::kU64:
      return bin_stretch<u64>(*this, bytes);
    default:
      return bin_stretch<float>(*this, bytes);
  }
}

// Counts four codes at a time, into the two tables in turns.
void CodeCounter::add16(std::span<const u8> bytes) {
  u32* tables = tables_.data();
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    u64 four = 0;
    std::memcpy(&four, bytes.data() + i, 8);
    tables[four & 0xffff]++;
    tables[kCodes + (four >> 16 & 0xffff)]++;
    tables[four >> 32 & 0xffff]++;
    tables[kCodes + (four >> 48)]++;
  }
  for (; i + 2 <= bytes.size(); i += 2) tables[load<u16>(bytes.data() + i, 0)]++;
}

void CodeCounter::add(int number_bits, std::span<const u8> bytes) {
  tables_.resize(2 * kCodes);
  numbers_ += static_cast<i64>(bytes.size()) * 8 / number_bits;
  if (number_bits == 16) {
    if (numbers_ > kFewNumbers) return add16(bytes);
    for (std::size_t i = 0; i + 2 <= bytes.size(); i += 2)
      if (u16 code = load<u16>(bytes.data() + i, 0); tables_[code]++ == 0) touched_.push_back(code);
  } else if (number_bits == 8) {
    for (std::size_t i = 0; i < bytes.size(); i++) tables_[(i & 1) * kCodes + bytes[i]]++;
  } else {
    // Four and six bits, packed from the lowest up: three bytes hold whole numbers of either.
    u32 mask = (1u << number_bits) - 1;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
      u32 window = 0, bits = 0;
      for (std::size_t b = i; b < std::min(i + 3, bytes.size()); b++, bits += 8)
        window |= static_cast<u32>(bytes[b]) << bits;
      for (; bits >= static_cast<u32>(number_bits);
           bits -= static_cast<u32>(number_bits), window >>= number_bits)
        tables_[window & mask]++;
    }
  }
}

// Empties the tables: all of a table of 65,536 counters only after many numbers, otherwise the codes that
// were noted as touched, or the 256 that types of at most 8 bits have.
CodeCounts CodeCounter::take() {
  CodeCounts out;
  auto take_code = [&](u32 code) {
    u32 count = std::exchange(tables_[code], 0) + std::exchange(tables_[kCodes + code], 0);
    if (count > 0) out.push_back({code, count});
  };
  if (numbers_ > kFewNumbers) {
    for (u32 code = 0; code < kCodes; code++) take_code(code);
  } else if (!touched_.empty()) {
    std::sort(touched_.begin(), touched_.end());
    for (u32 code : touched_) take_code(code);
  } else if (numbers_ > 0) {
    for (u32 code = 0; code < 256; code++) take_code(code);
  }
  touched_.clear();
  numbers_ = 0;
  return out;
}

CodeCounts merged(const CodeCounts& a, const CodeCounts& b) {
  CodeCounts out;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].code < b[j].code)) {
      out.push_back(a[i++]);
    } else if (i == a.size() || b[j].code < a[i].code) {
      out.push_back(b[j++]);
    } else {
      out.push_back({a[i].code, a[i].count + b[j].count});
      i++, j++;
    }
  }
  return out;
}

}  // namespace mckpt::impl
