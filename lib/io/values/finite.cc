// Finds numbers that are not finite by comparing bits, without floating-point arithmetic: a float is not
// finite if its bits without the sign are at least infinity's. The 8-bit types have rules of their own
// (kRules).
//
//   bfloat16    0x7f80 infinity    0xff80 -infinity    0x7fc0 NaN    0x7f7f the largest finite number
//
// The scan has two steps: a loop that only takes the largest code of a stretch of 4,096 numbers, and that
// compilers turn into vector instructions; and, for the rare stretch whose largest code is not finite, a slow
// loop that finds places and kinds. Where the largest value of all is a large number, its stretch is looked
// at too (loudest.h).
#include "io/values/finite.h"

#include <algorithm>

#include "io/file/clones.h"
#include "io/values/element.h"

namespace mckpt::impl {
namespace {

// Which codes of a type are not finite: without the sign bit `least` or more, or (no_sign) equal to `least`.
// Among these, the code `infinity` is an infinity and the others are NaN; 0: the type has no infinity.
struct Rule {
  DType dtype;
  bool no_sign;
  u64 least, infinity;
};

constexpr Rule kRules[] = {
    {DType::kF16, false, 0x7c00, 0x7c00},
    {DType::kC32, false, 0x7c00, 0x7c00},
    {DType::kBF16, false, 0x7f80, 0x7f80},
    {DType::kF32, false, 0x7f800000, 0x7f800000},
    {DType::kC64, false, 0x7f800000, 0x7f800000},
    {DType::kF64, false, 0x7ff0000000000000, 0x7ff0000000000000},
    {DType::kC128, false, 0x7ff0000000000000, 0x7ff0000000000000},
    {DType::kF8E4M3, false, 0x7f, 0},
    {DType::kF8E5M2, false, 0x7c, 0x7c},
    {DType::kF8E4M3FNUZ, true, 0x80, 0},
    {DType::kF8E5M2FNUZ, true, 0x80, 0},
    {DType::kF8E8M0, true, 0xff, 0},
};

const Rule* rule_of(DType dtype) {
  for (const Rule& r : kRules)
    if (r.dtype == dtype) return &r;
  return nullptr;
}

template <typename T>
T magnitude_mask(const Rule& rule) {
  return rule.no_sign ? static_cast<T>(~T{0}) : static_cast<T>(static_cast<T>(~T{0}) >> 1);
}

// The largest of the codes & mask.
template <typename T>
[[gnu::always_inline]] inline T largest_code(const u8* bytes, i64 count, T mask) {
  T most = 0;
  for (i64 i = 0; i < count; i++) {
    const T m = load<T>(bytes, i) & mask;
    most = m > most ? m : most;
  }
  return most;
}

MCKPT_CLONES u8 largest(const u8* b, i64 n, u8 mask) { return largest_code<u8>(b, n, mask); }
MCKPT_CLONES u16 largest(const u8* b, i64 n, u16 mask) { return largest_code<u16>(b, n, mask); }
MCKPT_CLONES u32 largest(const u8* b, i64 n, u32 mask) { return largest_code<u32>(b, n, mask); }
// Without the sign the codes of 64 bits are the same signed, as which AVX2 compares them.
MCKPT_CLONES u64 largest(const u8* b, i64 n, u64 mask) {
  return static_cast<u64>(largest_code<i64>(b, n, static_cast<i64>(mask)));
}

// Counts the numbers of a stretch that are not finite. Returns the largest code of the others.
template <typename T>
T count_non_finite(const Rule& rule, const u8* bytes, i64 count, i64 at, NonFinite& found) {
  const T mask = magnitude_mask<T>(rule), least = static_cast<T>(rule.least);
  const T most = rule.no_sign ? least : static_cast<T>(~T{0});
  T finite = 0;
  for (i64 i = 0; i < count; i++) {
    T m = load<T>(bytes, i) & mask;
    if (m < least || m > most) {
      finite = std::max(finite, m);
      continue;
    }
    bool infinite = rule.infinity != 0 && m == static_cast<T>(rule.infinity);
    i64& first = infinite ? found.first_infinity : found.first_nan;
    if (first < 0) first = at + i;
    (infinite ? found.infinities : found.nans)++;
  }
  return finite;
}

// Scans numbers of one width in stretches, and looks closer at one with numbers that are not finite.
template <typename T>
void scan(const Rule& rule, std::span<const u8> bytes, i64 at, NonFinite& found) {
  const T mask = magnitude_mask<T>(rule), least = static_cast<T>(rule.least);
  const i64 numbers = static_cast<i64>(bytes.size() / sizeof(T));
  constexpr i64 kStretch = 4096;
  for (i64 begin = 0; begin < numbers; begin += kStretch) {
    i64 n = std::min(kStretch, numbers - begin);
    const u8* here = bytes.data() + begin * static_cast<i64>(sizeof(T));
    T most = largest(here, n, mask);
    if (most >= least) most = count_non_finite<T>(rule, here, n, at + begin, found);
    if (most > found.loudest.code)
      found.loudest =
          look_closer(rule.dtype, {here, static_cast<std::size_t>(n) * sizeof(T)}, at + begin, most);
  }
}

}  // namespace

void NonFinite::merge(const NonFinite& later) {
  nans += later.nans;
  infinities += later.infinities;
  if (first_nan < 0) first_nan = later.first_nan;
  if (first_infinity < 0) first_infinity = later.first_infinity;
  if (later.loudest.code > loudest.code) loudest = later.loudest;
}

void scan_non_finite(DType dtype, std::span<const u8> bytes, i64 at, NonFinite& found) {
  const Rule* rule = rule_of(dtype);
  if (!rule) {
    auto is_set = [](u8 b) { return b != 0; };
    if (found.loudest.code == 0) found.loudest.code = std::ranges::any_of(bytes, is_set);
    return;
  }
  switch (element_form(dtype).number_bits) {
    case 8:
      return scan<u8>(*rule, bytes, at, found);
    case 16:
      return scan<u16>(*rule, bytes, at, found);
    case 32:
      return scan<u32>(*rule, bytes, at, found);
    default:
      return scan<u64>(*rule, bytes, at, found);
  }
}

void scan_outside(std::span<const std::pair<i64, i64>> left_out, DType dtype, std::span<const u8> bytes,
                  i64 at, NonFinite& found) {
  const i64 bits = element_form(dtype).number_bits, end = at + std::ssize(bytes);
  auto scan = [&](i64 from, i64 to) {
    from = std::max(from, at), to = std::min(to, end);
    if (from < to)
      scan_non_finite(dtype,
                      bytes.subspan(static_cast<std::size_t>(from - at), static_cast<std::size_t>(to - from)),
                      from * 8 / bits, found);
  };
  i64 done = at;
  for (auto [first, last] : left_out) {
    scan(done, first * bits / 8);
    done = std::max(done, last * bits / 8);
  }
  scan(done, end);
}

}  // namespace mckpt::impl
