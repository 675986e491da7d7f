// Distances of bfloat16, float16 and float32 with vectors of 256 bits, eight numbers at a time. Their bits
// decide what differs and by how many steps, their values as doubles go into the sums:
//
//   loaded    8 codes, at the upper end of 32 bits     8 values as fp32, 0 where one of the two is not finite
//                 |                                         |
//   counted   differing, steps between codes           as 2 x 4 doubles: a*a, b*b, a*b, (a-b)*(a-b), |a-b|
#include "io/values/distance_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>

#define MCKPT_AVX2 __attribute__((target("avx2,fma,f16c,popcnt")))

namespace mckpt::impl {
namespace distance_avx2 {

struct Loaded {
  __m256i codes;  // the sign is the uppermost bit
  __m256 values;
};

// A code's lowest bit is bit kCodeShift of its 32 bits.
template <DType kType>
inline constexpr int kCodeShift = kType == DType::kF32 ? 0 : 16;
template <DType kType>
inline constexpr i64 kItemBytes = kType == DType::kF32 ? 4 : 2;

template <DType kType>
MCKPT_AVX2 inline Loaded loaded(const u8* from) {
  if constexpr (kType == DType::kF32) {
    __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return {bits, _mm256_castsi256_ps(bits)};
  } else {
    __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    __m256i codes = _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
    if constexpr (kType == DType::kBF16) return {codes, _mm256_castsi256_ps(codes)};
    return {codes, _mm256_cvtph_ps(halves)};
  }
}

MCKPT_AVX2 inline __m256i magnitude(__m256 values) {
  return _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7fffffff));
}

// Codes as integers that grow with the values: neighbours are neighbours, -0 and +0 are the same.
MCKPT_AVX2 inline __m256i ordered(__m256i codes) {
  __m256i sign = _mm256_srai_epi32(codes, 31);
  __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi32(0x7fffffff));
  return _mm256_sub_epi32(_mm256_xor_si256(magnitude, sign), sign);
}

MCKPT_AVX2 inline unsigned bits_of(__m256i mask) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

// Sums of four numbers of each eight.
struct Sums {
  __m256d aa, bb, ab, dd, largest;
};

// Adds four pairs of numbers; the bits of those that are further apart than the tolerance.
MCKPT_AVX2 inline unsigned add(Sums& sums, __m128 of_a, __m128 of_b, __m256d absolute, __m256d relative) {
  const __m256d sign = _mm256_set1_pd(-0.0);
  __m256d a = _mm256_cvtps_pd(of_a), b = _mm256_cvtps_pd(of_b), d = _mm256_sub_pd(a, b);
  sums.aa = _mm256_fmadd_pd(a, a, sums.aa);
  sums.bb = _mm256_fmadd_pd(b, b, sums.bb);
  sums.ab = _mm256_fmadd_pd(a, b, sums.ab);
  sums.dd = _mm256_fmadd_pd(d, d, sums.dd);
  __m256d apart = _mm256_andnot_pd(sign, d);
  sums.largest = _mm256_max_pd(sums.largest, apart);
  __m256d limit = _mm256_fmadd_pd(relative, _mm256_andnot_pd(sign, b), absolute);
  return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(apart, limit, _CMP_GT_OQ)));
}

MCKPT_AVX2 inline double total(__m256d lanes) {
  alignas(32) std::array<double, 4> out;
  _mm256_store_pd(out.data(), lanes);
  return (out[0] + out[1]) + (out[2] + out[3]);
}

MCKPT_AVX2 inline double greatest(__m256d lanes) {
  alignas(32) std::array<double, 4> out;
  _mm256_store_pd(out.data(), lanes);
  return std::max({out[0], out[1], out[2], out[3]});
}

// Sums are taken for so many numbers at a time, and then added: they lose less.
constexpr i64 kBlock = 4096;

template <DType kType>
MCKPT_AVX2 ValueDistance block(const u8* a, const u8* b, i64 numbers, const Tolerance& within) {
  const __m256i infinity = _mm256_set1_epi32(0x7f800000), below = _mm256_set1_epi32(0x7f7fffff);
  const __m256d absolute = _mm256_set1_pd(within.absolute), relative = _mm256_set1_pd(within.relative);
  const u64 alike_steps = static_cast<u64>(std::max(i64{0}, within.ulps)) << kCodeShift<kType>;
  const __m256i few =
      _mm256_set1_epi32(static_cast<i32>(static_cast<u32>(std::min(alike_steps, u64{0xffffffff}))));
  const __m256d zero = _mm256_setzero_pd();
  Sums lower{zero, zero, zero, zero, zero}, upper = lower;
  __m256i most = _mm256_setzero_si256();
  ValueDistance out;
  i64 pairs = 0;  // of finite numbers that differ
  for (i64 i = 0; i < numbers; i += kDistanceLanes) {
    Loaded x = loaded<kType>(a + i * kItemBytes<kType>), y = loaded<kType>(b + i * kItemBytes<kType>);
    __m256i of_x = magnitude(x.values), of_y = magnitude(y.values);
    __m256i same = _mm256_cmpeq_epi32(x.codes, y.codes);
    __m256i infinite = _mm256_cmpgt_epi32(_mm256_max_epi32(of_x, of_y), below);
    unsigned differ = ~bits_of(same) & 0xff, special = bits_of(infinite) & differ;
    out.differing += __builtin_popcount(differ);
    if (special != 0) [[unlikely]] {
      unsigned nan =
          bits_of(_mm256_cmpgt_epi32(of_x, infinity)) & bits_of(_mm256_cmpgt_epi32(of_y, infinity));
      out.not_finite += __builtin_popcount(special & ~nan);
    }
    differ &= ~special;
    pairs += differ != 0;
    __m256i one = ordered(x.codes), other = ordered(y.codes);
    __m256i steps = _mm256_sub_epi32(_mm256_max_epi32(one, other), _mm256_min_epi32(one, other));
    steps = _mm256_andnot_si256(infinite, steps);
    most = _mm256_max_epu32(most, steps);
    unsigned near = bits_of(_mm256_cmpeq_epi32(_mm256_max_epu32(steps, few), few));
    __m256 finite_x = _mm256_andnot_ps(_mm256_castsi256_ps(infinite), x.values);
    __m256 finite_y = _mm256_andnot_ps(_mm256_castsi256_ps(infinite), y.values);
    unsigned far =
        add(lower, _mm256_castps256_ps128(finite_x), _mm256_castps256_ps128(finite_y), absolute, relative);
    far |=
        add(upper, _mm256_extractf128_ps(finite_x, 1), _mm256_extractf128_ps(finite_y, 1), absolute, relative)
        << 4;
    out.beyond += __builtin_popcount(far & (within.ulps > 0 ? ~near : ~0u));
  }
  out.beyond += out.not_finite;
  if (pairs > 0) out.largest = greatest(_mm256_max_pd(lower.largest, upper.largest));
  alignas(32) std::array<u32, 8> steps;
  _mm256_store_si256(reinterpret_cast<__m256i*>(steps.data()), most);
  out.most_ulps = *std::ranges::max_element(steps) >> kCodeShift<kType>;
  out.squares_a = total(_mm256_add_pd(lower.aa, upper.aa)),
  out.squares_b = total(_mm256_add_pd(lower.bb, upper.bb));
  out.products = total(_mm256_add_pd(lower.ab, upper.ab)),
  out.squares_apart = total(_mm256_add_pd(lower.dd, upper.dd));
  _mm256_zeroupper();  // which compilers leave out here: code for older processors is several times slower without it
  return out;
}

template <DType kType>
ValueDistance sum(const u8* a, const u8* b, i64 numbers, const Tolerance& within) {
  ValueDistance out;
  for (i64 n; numbers > 0; numbers -= n, a += n * kItemBytes<kType>, b += n * kItemBytes<kType>) {
    n = std::min(numbers, kBlock);
    out.merge(block<kType>(a, b, n, within));
  }
  return out;
}

}  // namespace distance_avx2

DistanceKernel avx2_distance_kernel(DType dtype) {
  using namespace distance_avx2;
  if (dtype == DType::kBF16) return sum<DType::kBF16>;
  if (dtype == DType::kF16) return sum<DType::kF16>;
  return dtype == DType::kF32 ? sum<DType::kF32> : nullptr;
}

}  // namespace mckpt::impl

#else

namespace mckpt::impl {
DistanceKernel avx2_distance_kernel(DType) { return nullptr; }
}  // namespace mckpt::impl

#endif
