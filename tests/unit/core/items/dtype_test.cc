#include "core/items/dtype.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

#include <limits>

namespace mckpt::impl {
namespace dtype_test {

TEST(DType, EveryNameLeadsBackToItsRow) {
  for (const DTypeInfo& d : all_dtypes()) {
    EXPECT_EQ(dtype_from_name(d.name), d.dtype);
    if (!d.safetensors.empty()) {
      EXPECT_EQ(dtype_from_safetensors(d.safetensors), d.dtype);
    }
  }
  EXPECT_EQ(dtype_from_name("torch.half"), DType::kF16);
  EXPECT_EQ(dtype_from_name("bf16"), DType::kBF16);
}

TEST(DType, SizesAreTorchs) {
  struct Row {
    const char* name;
    i64 bytes;
  };
  for (Row r : {Row{"bool", 1},
                {"uint16", 2},
                {"bfloat16", 2},
                {"float64", 8},
                {"complex32", 4},
                {"complex128", 16},
                {"float8_e8m0fnu", 1},
                {"float4_e2m1fn_x2", 1},
                {"int3", 1},
                {"qint32", 4},
                {"quint4x2", 1},
                {"bits16", 2}})
    EXPECT_EQ(dtype_bytes(dtype_from_name(r.name), 1), r.bytes) << r.name;
}

TEST(DType, SubByteElementsMustFillBytes) {
  EXPECT_EQ(dtype_bytes(DType::kF4, 24), 12);
  EXPECT_EQ(dtype_bytes(DType::kF6E2M3, 4), 3);
  EXPECT_THROW(dtype_bytes(DType::kF4, 3), Error);
  EXPECT_THROW(dtype_bytes(DType::kF6E3M2, 5), Error);
}

TEST(DType, SizesAreChecked) {
  const i64 max = std::numeric_limits<i64>::max();
  EXPECT_THROW(dtype_bytes(DType::kF32, max), Error);
  EXPECT_THROW(dtype_bytes(DType::kF4, max), Error);
  EXPECT_EQ(dtype_bytes(DType::kU8, max), max);
}

TEST(DType, UnknownNamesAreRefusedWithTheNearest) {
  try {
    dtype_from_name("torch.bflot16");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnknownDType);
    EXPECT_EQ(e.help(), "did you mean bfloat16?");
  }
  EXPECT_THROW(dtype_from_safetensors("F12"), Error);
  EXPECT_THROW(dtype_from_safetensors(""), Error);
  EXPECT_THROW(dtype_from_name("\x1b[2Jfloat\n"), Error);
}

}  // namespace dtype_test
}  // namespace mckpt::impl
