// How far apart two tensors are: sums over the numbers of both, taken stretch by stretch.
//
//   a   1   2   3          largest            1           of |a - b|
//   b   1   2   4          relative_l2()      1 / sqrt(21)  length of a - b, by the length of b
//                          cosine()           17 / sqrt(14 * 21)
//                          most_ulps          steps from one float to the next between 3 and 4
//
// Numbers that are not finite on either side are in no sum; they count as beyond every tolerance, unless both
// sides have the same one.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "core/base/processor.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

// How far apart two numbers may be and still count as alike: |a - b| <= absolute + relative * |b|, or so many
// steps from one float of the type to the next.
struct Tolerance {
  double absolute = 0, relative = 0;
  i64 ulps = 0;

  bool none() const { return absolute == 0 && relative == 0 && ulps == 0; }
};

// Sums over pairs of numbers. A value; merge() adds the distances of another stretch.
struct ValueDistance {
  i64 differing = 0;   // numbers whose bits differ
  i64 beyond = 0;      // of these, numbers that are further apart than the tolerance
  i64 not_finite = 0;  // of these, numbers that are NaN or infinite on one side at least, and not NaN on both
  i64 most_ulps = 0;   // of two finite floats of at most 32 bits
  std::optional<double> largest{};  // of two finite numbers that differ
  // A long double has room for the squares of all doubles (on x86-64, and where it has 128 bits).
  long double squares_a = 0, squares_b = 0, products = 0, squares_apart = 0;

  void merge(const ValueDistance& more);
  // Nothing where b is zero throughout.
  std::optional<double> relative_l2() const;
  // Nothing where one of the two is zero throughout.
  std::optional<double> cosine() const;
};

// Measures distances between tensors of one type. const and thread-safe.
class DistanceMeter {
 public:
  // The processor has to have what is named.
  explicit DistanceMeter(DType dtype, Processor processor = best_processor());

  DType dtype() const { return dtype_; }
  // Whether distances of this type can be measured: floats and complex numbers of whole bytes.
  bool measures() const { return measures_; }
  // The sums of two stretches of the same number of whole elements. pre: measures().
  ValueDistance between(std::span<const u8> a, std::span<const u8> b, const Tolerance& within) const;

 private:
  ValueDistance plain(std::span<const u8> a, std::span<const u8> b, const Tolerance& within) const;

  DType dtype_;
  bool measures_;
  // For most of a stretch, with the processor's vectors; null: there is none.
  ValueDistance (*fast_)(const u8* a, const u8* b, i64 numbers, const Tolerance& within);
  std::vector<double> values_;  // by code, of the small types that are not computed faster
};

}  // namespace mckpt::impl
