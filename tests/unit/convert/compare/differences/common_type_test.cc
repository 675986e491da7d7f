// The type in which values of two types are compared, and what each is in it.
#include "convert/compare/differences/common_type.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/items/dtype.h"
#include "io/values/element.h"

namespace mckpt::impl {
namespace common_type_test {

TEST(CommonType, HasTheValuesOfBothInEitherOrder) {
  const struct {
    DType a, b;
    std::optional<DType> want;
  } rows[] = {
      {DType::kBF16, DType::kF32, DType::kF32},     {DType::kBF16, DType::kF16, DType::kF32},
      {DType::kF32, DType::kF64, DType::kF64},      {DType::kBF16, DType::kF8E4M3, DType::kBF16},
      {DType::kF16, DType::kF8E5M2, DType::kF16},   {DType::kF8E4M3, DType::kF8E5M2, DType::kF16},
      {DType::kBF16, DType::kF8E8M0, DType::kBF16}, {DType::kF16, DType::kF8E8M0, DType::kF32},
      {DType::kI32, DType::kI64, DType::kI64},      {DType::kI32, DType::kU8, DType::kI32},
      {DType::kU8, DType::kI8, DType::kI16},        {DType::kU32, DType::kI32, DType::kI64},
      {DType::kU64, DType::kI8, std::nullopt},      {DType::kBool, DType::kU8, DType::kU8},
      {DType::kI8, DType::kBF16, DType::kBF16},     {DType::kI16, DType::kBF16, DType::kF32},
      {DType::kI32, DType::kF32, DType::kF64},      {DType::kI64, DType::kF64, std::nullopt},
      {DType::kC64, DType::kF32, std::nullopt},     {DType::kBool, DType::kF8E4M3, DType::kF16},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(common_type(row.a, row.b), row.want) << dtype_name(row.a) << " " << dtype_name(row.b);
    EXPECT_EQ(common_type(row.b, row.a), row.want) << dtype_name(row.b) << " " << dtype_name(row.a);
  }
}

TEST(CommonType, WidensEveryCodeToItsValue) {
  for (DType from :
       {DType::kBool, DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kF16, DType::kBF16,
        DType::kF8E4M3, DType::kF8E5M2, DType::kF8E4M3FNUZ, DType::kF8E5M2FNUZ, DType::kF8E8M0})
    for (DType to :
         {DType::kU8, DType::kI16, DType::kF16, DType::kBF16, DType::kF32, DType::kI64, DType::kF64}) {
      if (!holds_values_of(to, from)) continue;
      const int bits = dtype_info(from).bits, codes = from == DType::kBool ? 2 : 1 << bits;
      std::vector<u8> items, wide;
      for (int code = 0; code < codes; code++) {
        items.push_back(static_cast<u8>(code));
        if (bits == 16) items.push_back(static_cast<u8>(code >> 8));
      }
      append_widened(from, to, items, wide);
      ASSERT_EQ(std::ssize(wide), dtype_bytes(to, codes));
      for (int i = 0; i < codes; i++) {
        const double a = number_at(from, items.data(), i), b = number_at(to, wide.data(), i);
        ASSERT_TRUE(a == b || (a != a && b != b)) << dtype_name(from) << " " << dtype_name(to) << " " << i;
      }
    }
}

}  // namespace common_type_test
}  // namespace mckpt::impl
