// A tile is 64 bytes wide on the destination side, so that whole cache lines are written, and consists of
// square blocks that are transposed in registers:
//
//   16-bit items     an 8 x 8 block is 8 vectors: three rounds of interleaving turn it
//   32-bit items     4 x 4 block, two rounds
//
// With from_step 2, every other column is picked out of two vectors when they are loaded. With a to_step
// other than 1, the transposed tile is first written to a buffer. Distances in this file are bytes.
#include "core/items/transpose.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#define MCKPT_HAVE_SSE2 1
#endif

namespace mckpt::impl {
namespace {

// A TransposeShape with its distances in bytes.
struct Bytes {
  i64 rows, columns, from_row, from_step, to_row, to_step;
};

template <i64 kItem>
void transpose_scalar(const Bytes& s, const u8* from, u8* to) {
  constexpr i64 kTile = std::max<i64>(64 / kItem, 1);
  for (i64 r0 = 0; r0 < s.rows; r0 += kTile)
    for (i64 c = 0; c < s.columns; c++)
      for (i64 r = r0; r < std::min(r0 + kTile, s.rows); r++)
        std::memcpy(to + c * s.to_row + r * s.to_step, from + r * s.from_row + c * s.from_step, kItem);
}

#if MCKPT_HAVE_SSE2

__m128i load(const u8* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
void store(u8* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

template <i64 kItem, i64 kStep>
__m128i load_items(const u8* p) {
  if constexpr (kStep == 1) return load(p);
  // The last load ends with the last item that is needed, so that no byte after it is read.
  if constexpr (kItem == 2) {
    // Sign-extended halves pass the saturating pack unchanged.
    __m128i a = _mm_srai_epi32(_mm_slli_epi32(load(p), 16), 16), b = _mm_srai_epi32(load(p + 14), 16);
    return _mm_packs_epi32(a, b);
  } else {
    __m128i a = _mm_shuffle_epi32(load(p), _MM_SHUFFLE(3, 1, 2, 0));
    __m128i b = _mm_shuffle_epi32(load(p + 12), _MM_SHUFFLE(2, 0, 3, 1));
    return _mm_unpacklo_epi64(a, b);
  }
}

template <i64 kStep>
void turn16(const u8* from, i64 from_row, u8* to, i64 to_row) {
  __m128i a[8], b[8];
  for (i64 i = 0; i < 8; i++) a[i] = load_items<2, kStep>(from + i * from_row);
  for (int i = 0; i < 4; i++) {
    b[i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
    b[i + 4] = _mm_unpackhi_epi16(a[i], a[i + 4]);
  }
  // b[i] = a[i][0] a[i+4][0] a[i][1] a[i+4][1] ...; two more rounds put all eight rows of a column side by
  // side.
  for (int half = 0; half < 8; half += 4) {
    __m128i c0 = _mm_unpacklo_epi16(b[half], b[half + 2]), c1 = _mm_unpackhi_epi16(b[half], b[half + 2]);
    __m128i c2 = _mm_unpacklo_epi16(b[half + 1], b[half + 3]),
            c3 = _mm_unpackhi_epi16(b[half + 1], b[half + 3]);
    store(to + (half + 0) * to_row, _mm_unpacklo_epi16(c0, c2));
    store(to + (half + 1) * to_row, _mm_unpackhi_epi16(c0, c2));
    store(to + (half + 2) * to_row, _mm_unpacklo_epi16(c1, c3));
    store(to + (half + 3) * to_row, _mm_unpackhi_epi16(c1, c3));
  }
}

template <i64 kStep>
void turn32(const u8* from, i64 from_row, u8* to, i64 to_row) {
  __m128i a[4];
  for (i64 i = 0; i < 4; i++) a[i] = load_items<4, kStep>(from + i * from_row);
  __m128i b0 = _mm_unpacklo_epi32(a[0], a[1]), b1 = _mm_unpackhi_epi32(a[0], a[1]);
  __m128i b2 = _mm_unpacklo_epi32(a[2], a[3]), b3 = _mm_unpackhi_epi32(a[2], a[3]);
  store(to, _mm_unpacklo_epi64(b0, b2));
  store(to + to_row, _mm_unpackhi_epi64(b0, b2));
  store(to + 2 * to_row, _mm_unpacklo_epi64(b1, b3));
  store(to + 3 * to_row, _mm_unpackhi_epi64(b1, b3));
}

template <i64 kItem, i64 kStep>
void turn(const u8* from, i64 from_row, u8* to, i64 to_row) {
  if constexpr (kItem == 2)
    turn16<kStep>(from, from_row, to, to_row);
  else
    turn32<kStep>(from, from_row, to, to_row);
}

// Whole tiles by blocks; the rest at the right and at the bottom item by item.
template <i64 kItem, i64 kStep>
void transpose_blocks(const Bytes& s, const u8* from, u8* to) {
  constexpr i64 kBlock = 16 / kItem, kTile = 64 / kItem;
  i64 rows = s.rows / kTile * kTile, columns = s.columns / kBlock * kBlock;
  for (i64 r = 0; r < rows; r += kTile)
    for (i64 c = 0; c < columns; c += kBlock) {
      alignas(64) u8 buffer[kBlock * 64];
      bool direct = s.to_step == kItem;
      u8* corner = direct ? to + c * s.to_row + r * kItem : buffer;
      i64 row = direct ? s.to_row : 64;
      for (i64 part = 0; part < kTile; part += kBlock)
        turn<kItem, kStep>(from + (r + part) * s.from_row + c * s.from_step, s.from_row,
                           corner + part * kItem, row);
      for (i64 line = 0; !direct && line < kBlock; line++)
        for (i64 i = 0; i < kTile; i++)
          std::memcpy(to + (c + line) * s.to_row + (r + i) * s.to_step, buffer + line * 64 + i * kItem,
                      kItem);
    }
  Bytes right = s, bottom = s;
  right.rows = rows;
  right.columns = s.columns - columns;
  transpose_scalar<kItem>(right, from + columns * s.from_step, to + columns * s.to_row);
  bottom.rows = s.rows - rows;
  transpose_scalar<kItem>(bottom, from + rows * s.from_row, to + rows * s.to_step);
}

#endif

template <i64 kItem>
void transpose_items(const TransposeShape& shape, const u8* from, u8* to) {
  Bytes s{shape.rows,           shape.columns,        shape.from_row * kItem, shape.from_step * kItem,
          shape.to_row * kItem, shape.to_step * kItem};
#if MCKPT_HAVE_SSE2
  if constexpr (kItem == 2 || kItem == 4) {
    if (shape.from_step == 1) return transpose_blocks<kItem, 1>(s, from, to);
    if (shape.from_step == 2) return transpose_blocks<kItem, 2>(s, from, to);
  }
#endif
  transpose_scalar<kItem>(s, from, to);
}

}  // namespace

void transpose(const TransposeShape& s, i64 item_bytes, const u8* from, u8* to) {
  switch (item_bytes) {
    case 1:
      return transpose_items<1>(s, from, to);
    case 2:
      return transpose_items<2>(s, from, to);
    case 4:
      return transpose_items<4>(s, from, to);
    case 8:
      return transpose_items<8>(s, from, to);
    default:
      return transpose_items<16>(s, from, to);
  }
}

}  // namespace mckpt::impl
