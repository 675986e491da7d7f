#include "io/values/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "io/values/element.h"

namespace mckpt::impl {
namespace {

// Compares with a look at every number, for random bytes: codes of every kind occur.
TEST(NonFinite, AgreesWithALookAtEveryNumber) {
  std::mt19937_64 random(7);
  for (const DTypeInfo& info : all_dtypes()) {
    i64 bits = element_form(info.dtype).number_bits;
    if (bits % 8 != 0) continue;
    for (std::size_t size : {0u, 16u, 4096u, 80000u}) {
      std::vector<u8> bytes(size);
      for (u8& b : bytes) b = static_cast<u8>(random());
      if (bits == 64)  // among random doubles, none is NaN
        for (std::size_t i = 7; i < size; i += 24) bytes[i] = 0x7f, bytes[i - 1] = 0xf0;
      NonFinite expected, found;
      for (i64 i = 0; i < static_cast<i64>(size) * 8 / bits; i++) {
        double v = number_at(info.dtype, bytes.data(), i);
        if (std::isnan(v) && expected.nans++ == 0) expected.first_nan = 100 + i;
        if (std::isinf(v) && expected.infinities++ == 0) expected.first_infinity = 100 + i;
      }
      scan_non_finite(info.dtype, bytes, 100, found);
      EXPECT_EQ(found.nans, expected.nans) << info.name;
      EXPECT_EQ(found.infinities, expected.infinities) << info.name;
      EXPECT_EQ(found.first_nan, expected.first_nan) << info.name;
      EXPECT_EQ(found.first_infinity, expected.first_infinity) << info.name;
    }
  }
}

TEST(NonFinite, KeepsTheFirstOfSeveralStretches) {
  std::vector<u8> one = {0x80, 0x3f}, nan = {0xc0, 0x7f};
  NonFinite found;
  scan_non_finite(DType::kBF16, one, 0, found);
  scan_non_finite(DType::kBF16, nan, 1, found);
  scan_non_finite(DType::kBF16, nan, 2, found);
  EXPECT_EQ(found.nans, 2);
  EXPECT_EQ(found.first_nan, 1);
  EXPECT_EQ(found.first_infinity, -1);
  NonFinite later;
  scan_non_finite(DType::kBF16, nan, 9, later);
  found.merge(later);
  EXPECT_EQ(found.nans, 3);
  EXPECT_EQ(found.first_nan, 1);
}

}  // namespace
}  // namespace mckpt::impl
