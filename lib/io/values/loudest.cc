// Exponents are read as bits and counted; no value is computed.
#include "io/values/loudest.h"

#include <algorithm>
#include <vector>

#include "io/values/element.h"

namespace mckpt::impl {
namespace {

struct Exponents {
  DType dtype;
  int mantissa_bits, bias;
};
constexpr Exponents kWide[] = {{DType::kF16, 10, 15},   {DType::kC32, 10, 15},  {DType::kBF16, 7, 127},
                               {DType::kF32, 23, 127},  {DType::kC64, 23, 127}, {DType::kF64, 52, 1023},
                               {DType::kC128, 52, 1023}};

constexpr int kLarge = 8;    // 256: weights of trained models that are larger are rare
constexpr int kGap = 8;      // exponents that none of the values has
constexpr i64 kFewOf = 256;  // few: one in so many, or one
constexpr i64 kLeastOthers = 8;

const Exponents* exponents_of(DType dtype) {
  auto found = std::ranges::find(kWide, dtype, &Exponents::dtype);
  return found == std::end(kWide) ? nullptr : found;
}

// How many values of a stretch have which exponent, as bits: zeros and what is not finite are left out.
template <typename T>
std::vector<i64> count_exponents(const Exponents& form, std::span<const u8> bytes, u64 code, i64& first) {
  constexpr T kMask = static_cast<T>(static_cast<T>(~T{0}) >> 1);
  std::vector<i64> counts((static_cast<u64>(kMask) >> form.mantissa_bits) + 1);
  for (i64 i = 0; i < static_cast<i64>(bytes.size() / sizeof(T)); i++) {
    const T m = load<T>(bytes.data(), i) & kMask;
    if (first < 0 && m == static_cast<T>(code)) first = i;
    if (m != 0) counts[m >> form.mantissa_bits]++;
  }
  counts.back() = 0;
  return counts;
}

std::vector<i64> count_exponents(const Exponents& form, std::span<const u8> bytes, u64 code, i64& first) {
  switch (element_form(form.dtype).number_bits) {
    case 16:
      return count_exponents<u16>(form, bytes, code, first);
    case 32:
      return count_exponents<u32>(form, bytes, code, first);
    default:
      return count_exponents<u64>(form, bytes, code, first);
  }
}

}  // namespace

bool has_wide_exponents(DType dtype) { return exponents_of(dtype) != nullptr; }

Loudest look_closer(DType dtype, std::span<const u8> bytes, i64 at, u64 code) {
  Loudest out{.code = code};
  const Exponents* form = exponents_of(dtype);
  const int top = form ? static_cast<int>(code >> form->mantissa_bits) : 0;
  if (!form || top < form->bias + kLarge) return out;
  i64 first = -1;
  const std::vector<i64> counts = count_exponents(*form, bytes, code, first);
  i64 all = 0, loud = 0;
  for (i64 n : counts) all += n;
  // The values above the highest gap, and the highest of the others
  int low = top, high = -1;
  for (int e = top; e >= 0 && low - e <= kGap; e--) {
    loud += counts[e];
    if (counts[e] > 0) low = e;
  }
  for (high = low - 1; high >= 0 && counts[high] == 0;) high--;
  const i64 others = all - loud;
  // If several values have one size, half are above the gap: they are ordinary values of the tensor.
  const bool own = others < loud;
  int around = 0;
  for (i64 seen = 0; around < top && (seen += counts[around]) * 2 < (own ? all : others);) around++;
  out.at = at + first;
  out.exponent = top - form->bias;
  out.around = around - form->bias;
  out.apart = !own && others >= kLeastOthers && low - high > std::max(kGap, high - around);
  out.few = loud <= std::max<i64>(1, all / kFewOf);
  return out;
}

}  // namespace mckpt::impl
