#include "core/dtype.h"

#include <gtest/gtest.h>

namespace mckpt {
namespace {

TEST(DType, EveryNameLeadsBackToItsRow) {
  for (const DTypeInfo& d : all_dtypes()) {
    EXPECT_EQ(dtype_from_name(d.name), d.dtype);
    if (!d.safetensors.empty()) {
      EXPECT_EQ(dtype_from_safetensors(d.safetensors), d.dtype);
    }
  }
}

TEST(DType, UnknownNamesAreRefusedWithTheNearest) {
  try {
    dtype_from_name("torch.bflot16");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnknownDType);
    EXPECT_EQ(e.help(), "did you mean bfloat16?");
  }
}

}  // namespace
}  // namespace mckpt
