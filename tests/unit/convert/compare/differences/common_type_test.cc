// The type in which values of two types are compared.
#include "convert/compare/differences/common_type.h"

#include <gtest/gtest.h>

#include "core/items/dtype.h"

namespace mckpt::impl {
namespace common_type_test {

TEST(CommonType, HasAllValuesOfBothInEitherOrder) {
  struct Case {
    DType a, b, common;
  };
  for (const Case& c : {Case{DType::kBF16, DType::kF32, DType::kF32},
                        Case{DType::kF16, DType::kF32, DType::kF32},
                        Case{DType::kBF16, DType::kF16, DType::kF32},
                        Case{DType::kF32, DType::kF64, DType::kF64},
                        Case{DType::kBF16, DType::kF64, DType::kF64},
                        Case{DType::kBF16, DType::kBF16, DType::kBF16}}) {
    EXPECT_EQ(common_type(c.a, c.b), c.common);
    EXPECT_EQ(common_type(c.b, c.a), c.common);
    EXPECT_TRUE(holds_values_of(c.common, c.a) && holds_values_of(c.common, c.b));
  }
  EXPECT_FALSE(holds_values_of(DType::kBF16, DType::kF16));
  EXPECT_FALSE(holds_values_of(DType::kF32, DType::kF64));
}

TEST(CommonType, OfTypesWithoutACastIsTheFirst) {
  EXPECT_EQ(common_type(DType::kI64, DType::kF32), DType::kI64);
  EXPECT_EQ(common_type(DType::kF32, DType::kI64), DType::kF32);
}

}  // namespace common_type_test
}  // namespace mckpt::impl
