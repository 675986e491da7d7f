// The kernels with vectors of 256 bits.
//
//   FP8       16 codes become fp16, whose bits they have but for their place: E4M3 s eeee mmm -> s 0eeee mmm0000000, a
//             value that is 256 times too small. fp16 becomes fp32, and subnormal codes need no case of their own.
//   nibbles   the 16 values that a block can have are computed first; a shuffle of bytes looks 16 codes up in them:
//
//               16-bit values   v0 v1 ... v15    as   lower bytes | upper bytes     2 shuffles, then interleaved
#include "core/quantized/row_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "core/quantized/row_code.h"

// Compilers do not clear the upper halves of registers behind functions of this attribute; code for older
// processors is several times slower where they are not clear, so that each kernel ends with
// _mm256_zeroupper().
#define MCKPT_AVX2 __attribute__((target("avx2,f16c")))

namespace mckpt::impl {
namespace {

MCKPT_AVX2 inline __m256 without_payload(__m256 values) {
  return _mm256_blendv_ps(values, _mm256_set1_ps(kNaN), _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}

MCKPT_AVX2 inline __m256i bf16_in_lanes(__m256 values) {
  __m256i bits = _mm256_castps_si256(values);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff)), 16);
}

// 16 values as 16-bit items.
template <DType kTo>
MCKPT_AVX2 inline __m256i narrowed(__m256 first, __m256 second) {
  first = without_payload(first), second = without_payload(second);
  if constexpr (kTo == DType::kBF16)
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(bf16_in_lanes(first), bf16_in_lanes(second)), 0xd8);
  return _mm256_set_m128i(_mm256_cvtps_ph(second, _MM_FROUND_TO_NEAREST_INT),
                          _mm256_cvtps_ph(first, _MM_FROUND_TO_NEAREST_INT));
}

template <DType kTo>
MCKPT_AVX2 inline void store16(u8* out, __m256 first, __m256 second) {
  if constexpr (kTo == DType::kF32) {
    _mm256_storeu_ps(reinterpret_cast<float*>(out), without_payload(first));
    _mm256_storeu_ps(reinterpret_cast<float*>(out) + 8, without_payload(second));
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), narrowed<kTo>(first, second));
  }
}

template <CodeFormat kCodes>
MCKPT_AVX2 inline __m256i fp8_as_fp16(__m128i codes) {
  __m256i wide = _mm256_cvtepu8_epi16(codes);
  if constexpr (kCodes == CodeFormat::kE5M2) return _mm256_slli_epi16(wide, 8);
  __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
  __m256i sign = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x80)), 8);
  __m256i nan =
      _mm256_and_si256(_mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f)), _mm256_set1_epi16(0x7e00));
  return _mm256_or_si256(_mm256_or_si256(sign, nan), _mm256_slli_epi16(magnitude, 7));
}

template <CodeFormat kCodes>
MCKPT_AVX2 inline __m256 fp16_as_values(__m128i halves) {
  __m256 values = _mm256_cvtph_ps(halves);
  return kCodes == CodeFormat::kE4M3 ? _mm256_mul_ps(values, _mm256_set1_ps(0x1p8f)) : values;
}

template <CodeFormat kCodes, DType kTo>
MCKPT_AVX2 void fp8(const RowStretch& row) {
  const float* scale = row.scales;
  for (i64 at = 0, in_block = row.skipped; at < row.items; in_block = 0, scale++) {
    i64 end = at + std::min(row.block_columns - in_block, row.items - at);
    const __m256 factor = _mm256_set1_ps(*scale);
    for (; at + 16 <= end; at += 16) {
      __m256i halves = fp8_as_fp16<kCodes>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row.codes + at)));
      __m256 first = fp16_as_values<kCodes>(_mm256_castsi256_si128(halves));
      __m256 second = fp16_as_values<kCodes>(_mm256_extracti128_si256(halves, 1));
      store16<kTo>(row.out + at * kItemBytes<kTo>, _mm256_mul_ps(first, factor),
                   _mm256_mul_ps(second, factor));
    }
    put_bytes<kTo>(row, at, end, *scale);
    at = end;
  }
  _mm256_zeroupper();
}

// 16 nibbles, one a byte, in order.
MCKPT_AVX2 inline __m128i split_nibbles(const u8* codes) {
  __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  const __m128i low = _mm_set1_epi8(15);
  return _mm_unpacklo_epi8(_mm_and_si128(bytes, low), _mm_and_si128(_mm_srli_epi16(bytes, 4), low));
}

// The 16 values of a block, for look-ups.
struct NibbleTable {
  __m128i lower, upper;  // bytes of 16-bit values
  __m256 first, second;  // 32-bit values of nibbles 0-7, 8-15
};

template <DType kTo>
MCKPT_AVX2 inline NibbleTable nibble_table(const CodeLevels& levels, float scale) {
  NibbleTable t{};
  const __m256 factor = _mm256_set1_ps(scale);
  t.first = _mm256_mul_ps(_mm256_loadu_ps(levels.data()), factor);
  t.second = _mm256_mul_ps(_mm256_loadu_ps(levels.data() + 8), factor);
  if constexpr (kTo == DType::kF32) return t;
  __m256i values = narrowed<kTo>(t.first, t.second);
  __m128i first = _mm256_castsi256_si128(values), second = _mm256_extracti128_si256(values, 1);
  const __m128i byte = _mm_set1_epi16(0xff);
  t.lower = _mm_packus_epi16(_mm_and_si128(first, byte), _mm_and_si128(second, byte));
  t.upper = _mm_packus_epi16(_mm_srli_epi16(first, 8), _mm_srli_epi16(second, 8));
  return t;
}

MCKPT_AVX2 inline __m256 look_up8(const NibbleTable& t, __m128i nibbles) {
  __m256i index = _mm256_cvtepu8_epi32(nibbles);
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(t.first, index), _mm256_permutevar8x32_ps(t.second, index),
                          _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}

template <DType kTo>
MCKPT_AVX2 void nibbles(const RowStretch& row) {
  const float* scale = row.scales;
  for (i64 at = 0, in_block = row.skipped; at < row.items; in_block = 0, scale++) {
    i64 end = at + std::min(row.block_columns - in_block, row.items - at);
    if ((at + row.odd) % 2 != 0) put_nibbles<kTo>(row, at, at + 1, *scale), at++;
    const NibbleTable table = nibble_table<kTo>(*row.levels, *scale);
    for (; at + 16 <= end; at += 16) {
      __m128i index = split_nibbles(row.codes + (at + row.odd) / 2);
      u8* out = row.out + at * kItemBytes<kTo>;
      if constexpr (kTo == DType::kF32) {
        store16<kTo>(out, look_up8(table, index), look_up8(table, _mm_unpackhi_epi64(index, index)));
      } else {
        __m128i lower = _mm_shuffle_epi8(table.lower, index), upper = _mm_shuffle_epi8(table.upper, index);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(lower, upper));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + 1, _mm_unpackhi_epi8(lower, upper));
      }
    }
    put_nibbles<kTo>(row, at, end, *scale);
    at = end;
  }
  _mm256_zeroupper();
}

MCKPT_AVX2 inline void put_from(const NibbleValues& table, const RowStretch& row, i64 item) {
  u8 nibble = nibble_at(row, item);
  row.out[2 * item] = table.lower[nibble], row.out[2 * item + 1] = table.upper[nibble];
}

MCKPT_AVX2 void nibbles_by_table(const RowStretch& row) {
  const u8* scale = row.scale_codes;
  for (i64 at = 0, in_block = row.skipped; at < row.items; in_block = 0, scale++) {
    i64 end = at + std::min(row.block_columns - in_block, row.items - at);
    const NibbleValues& table = (*row.tables)[*scale];
    if ((at + row.odd) % 2 != 0) put_from(table, row, at++);
    const __m128i lower = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.lower.data()));
    const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.upper.data()));
    for (; at + 16 <= end; at += 16) {
      __m128i index = split_nibbles(row.codes + (at + row.odd) / 2);
      __m128i first = _mm_shuffle_epi8(lower, index), second = _mm_shuffle_epi8(upper, index);
      u8* out = row.out + at * 2;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(first, second));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + 1, _mm_unpackhi_epi8(first, second));
    }
    while (at < end) put_from(table, row, at++);
  }
  _mm256_zeroupper();
}

template <DType kTo>
RowKernel kernel_to(CodeFormat codes, bool is_nibbles) {
  if (is_nibbles) return nibbles<kTo>;
  if (codes == CodeFormat::kE4M3) return fp8<CodeFormat::kE4M3, kTo>;
  if (codes == CodeFormat::kE5M2) return fp8<CodeFormat::kE5M2, kTo>;
  return nullptr;
}

}  // namespace

RowKernel avx2_row_kernel(CodeFormat codes, bool is_nibbles, DType to) {
  return to == DType::kBF16  ? kernel_to<DType::kBF16>(codes, is_nibbles)
         : to == DType::kF16 ? kernel_to<DType::kF16>(codes, is_nibbles)
                             : kernel_to<DType::kF32>(codes, is_nibbles);
}

RowKernel avx2_table_kernel() { return nibbles_by_table; }

}  // namespace mckpt::impl

#else

namespace mckpt::impl {
RowKernel avx2_row_kernel(CodeFormat, bool, DType) { return nullptr; }
RowKernel avx2_table_kernel() { return nullptr; }
}  // namespace mckpt::impl

#endif
