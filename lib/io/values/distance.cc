// Plain C++; the usual types have kernels with vectors besides (distance_avx2.cc). Numbers are taken in
// blocks of some hundred, widened to double, and summed in lanes, so that the compiler uses vectors for the
// sums. A block without a difference costs one product for each number; the rest is looked at number by
// number only where bits differ.
#include "io/values/distance.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "io/values/distance_kernels.h"
#include "io/values/element.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlock = 512;
constexpr i64 kLanes = 8;

using Wide = std::array<double, kBlock>;

// A float's bits as an integer that grows with the float: neighbours are neighbours, -0 and +0 are the same.
template <typename Bits>
i64 ordered(Bits bits) {
  constexpr int kTop = sizeof(Bits) * 8 - 1;
  i64 magnitude = static_cast<i64>(bits & static_cast<Bits>(~(Bits{1} << kTop)));
  return bits >> kTop ? -magnitude : magnitude;
}

struct Bf16 {
  using Bits = u16;
  static double value(Bits bits) { return std::bit_cast<float>(static_cast<u32>(bits) << 16); }
};
struct F32 {
  using Bits = u32;
  static double value(Bits bits) { return std::bit_cast<float>(bits); }
};
struct F64 {
  using Bits = u64;
  static double value(Bits bits) { return std::bit_cast<double>(bits); }
};
// A type of at most 16 bits, by the table of its values.
template <typename Code>
struct Coded {
  using Bits = Code;
  const std::vector<double>& values;
  double value(Bits bits) const { return values[bits]; }
};

// `steps`: whether bits count steps from one float to the next.
template <typename Kind>
class Summing {
 public:
  using Bits = typename Kind::Bits;

  Summing(Kind kind, bool steps, const Tolerance& within) : kind_(kind), steps_(steps), within_(within) {}

  ValueDistance sum(const u8* a, const u8* b, i64 numbers) {
    for (i64 n; numbers > 0; numbers -= n, a += n * kBytes, b += n * kBytes) {
      n = std::min(numbers, kBlock);
      bool same = std::memcmp(a, b, static_cast<std::size_t>(n * kBytes)) == 0;
      widen(a, n, a_);
      if (same) {
        add_products(a_, a_, n, true);
      } else {
        widen(b, n, b_);
        look(a, b, n);
        add_products(a_, b_, n, false);
      }
    }
    return sums_;
  }

 private:
  static constexpr i64 kBytes = sizeof(Bits);

  void widen(const u8* from, i64 n, Wide& to) const {
    for (i64 i = 0; i < n; i++) {
      double v = kind_.value(load<Bits>(from, i));
      to[static_cast<std::size_t>(i)] = std::isfinite(v) ? v : 0;
    }
  }

  // Looks at the numbers whose bits differ. A number that is not finite is 0 on both sides from here on.
  void look(const u8* a, const u8* b, i64 n) {
    for (i64 i = 0; i < n; i++) {
      Bits x = load<Bits>(a, i), y = load<Bits>(b, i);
      if (x == y) continue;
      sums_.differing++;
      double of_a = kind_.value(x), of_b = kind_.value(y);
      if (!std::isfinite(of_a) || !std::isfinite(of_b)) {
        a_[static_cast<std::size_t>(i)] = b_[static_cast<std::size_t>(i)] = 0;
        bool other = !(std::isnan(of_a) && std::isnan(of_b));
        sums_.beyond += other, sums_.not_finite += other;
        continue;
      }
      double apart = std::fabs(of_a - of_b);
      if (!sums_.largest || apart > *sums_.largest) sums_.largest = apart;
      i64 ulps = steps_ ? std::abs(ordered(x) - ordered(y)) : 0;
      sums_.most_ulps = std::max(sums_.most_ulps, ulps);
      bool alike = apart <= std::fma(within_.relative, std::fabs(of_b), within_.absolute) ||
                   (steps_ && within_.ulps > 0 && ulps <= within_.ulps);
      sums_.beyond += !alike;
    }
  }

  void add_products(const Wide& a, const Wide& b, i64 n, bool same) {
    std::array<double, kLanes> aa{}, bb{}, ab{}, dd{};
    i64 whole = n / kLanes * kLanes;
    for (i64 i = 0; i < whole; i += kLanes)
      for (i64 lane = 0; lane < kLanes; lane++) {
        auto l = static_cast<std::size_t>(lane), at = static_cast<std::size_t>(i + lane);
        aa[l] += a[at] * a[at];
        if (same) continue;
        bb[l] += b[at] * b[at];
        ab[l] += a[at] * b[at];
        dd[l] += (a[at] - b[at]) * (a[at] - b[at]);
      }
    for (i64 i = whole; i < n; i++) {
      auto at = static_cast<std::size_t>(i);
      aa[0] += a[at] * a[at], bb[0] += b[at] * b[at], ab[0] += a[at] * b[at];
      dd[0] += (a[at] - b[at]) * (a[at] - b[at]);
    }
    const double of_a = all(aa), of_b = same ? of_a : all(bb), apart = same ? 0 : all(dd);
    if constexpr (std::is_same_v<Kind, F64>)
      if (!fits(of_a) || !fits(of_b) || !(same || fits(apart))) return add_one_by_one(a, b, n);
    sums_.squares_a += of_a, sums_.squares_b += of_b, sums_.squares_apart += apart;
    sums_.products += same ? of_a : all(ab);
  }

  static double all(const std::array<double, kLanes>& lanes) {
    double sum = 0;
    for (double lane : lanes) sum += lane;
    return sum;
  }

  // Whether a sum of squares is so far from the limits of a double that no term overflowed or lost digits.
  static bool fits(double squares) { return squares > 1e-280 && squares < 1e300; }

  void add_one_by_one(const Wide& a, const Wide& b, i64 n) {
    for (i64 i = 0; i < n; i++) {
      const long double x = a[static_cast<std::size_t>(i)], y = b[static_cast<std::size_t>(i)];
      sums_.squares_a += x * x, sums_.squares_b += y * y, sums_.products += x * y;
      sums_.squares_apart += (x - y) * (x - y);
    }
  }

  Kind kind_;
  bool steps_;
  const Tolerance& within_;
  Wide a_, b_;
  ValueDistance sums_;
};

template <typename Kind>
ValueDistance summed(Kind kind, bool steps, std::span<const u8> a, std::span<const u8> b,
                     const Tolerance& within) {
  return Summing<Kind>(kind, steps, within)
      .sum(a.data(), b.data(), std::ssize(a) / static_cast<i64>(sizeof(typename Kind::Bits)));
}

}  // namespace

void ValueDistance::merge(const ValueDistance& more) {
  differing += more.differing, beyond += more.beyond, not_finite += more.not_finite;
  most_ulps = std::max(most_ulps, more.most_ulps), largest = std::max(largest, more.largest);
  squares_a += more.squares_a, squares_b += more.squares_b;
  products += more.products, squares_apart += more.squares_apart;
}

std::optional<double> ValueDistance::relative_l2() const {
  if (squares_b == 0) return std::nullopt;
  return static_cast<double>(std::sqrt(squares_apart) / std::sqrt(squares_b));
}

std::optional<double> ValueDistance::cosine() const {
  if (squares_a == 0 || squares_b == 0) return std::nullopt;
  return static_cast<double>(products / std::sqrt(squares_a) / std::sqrt(squares_b));
}

DistanceMeter::DistanceMeter(DType dtype, Processor processor)
    : dtype_(dtype), fast_(processor == Processor::kAvx2 ? avx2_distance_kernel(dtype) : nullptr) {
  const DTypeInfo& info = dtype_info(dtype);
  ElementForm form = element_form(dtype);
  measures_ =
      (info.kind == DTypeKind::kFloat || info.kind == DTypeKind::kComplex) && form.number_bits % 8 == 0;
  bool small = measures_ && form.kind == ElementForm::Kind::kCode;
  if (small && dtype != DType::kBF16) values_ = code_values(dtype);
}

ValueDistance DistanceMeter::between(std::span<const u8> a, std::span<const u8> b,
                                     const Tolerance& within) const {
  if (!fast_) return plain(a, b, within);
  i64 bytes = element_form(dtype_).number_bits / 8,
      whole = std::ssize(a) / bytes / kDistanceLanes * kDistanceLanes;
  ValueDistance sums = fast_(a.data(), b.data(), whole, within);
  auto rest = static_cast<std::size_t>(whole * bytes);
  if (rest < a.size()) sums.merge(plain(a.subspan(rest), b.subspan(rest), within));
  return sums;
}

ValueDistance DistanceMeter::plain(std::span<const u8> a, std::span<const u8> b,
                                   const Tolerance& within) const {
  ElementForm form = element_form(dtype_);
  if (dtype_ == DType::kBF16) return summed(Bf16{}, true, a, b, within);
  if (form.kind == ElementForm::Kind::kF32) return summed(F32{}, true, a, b, within);
  if (form.kind == ElementForm::Kind::kF64) return summed(F64{}, false, a, b, within);
  // Codes of a scale have no sign, and some types have an infinity or a NaN among the steps: only the usual
  // ones count.
  const SmallFloat* layout = small_float(dtype_);
  bool steps = layout && layout->special != SmallFloat::Special::kScale &&
               layout->special != SmallFloat::Special::kFnuz;
  if (form.number_bits == 16) return summed(Coded<u16>{values_}, steps, a, b, within);
  return summed(Coded<u8>{values_}, steps, a, b, within);
}

}  // namespace mckpt::impl
