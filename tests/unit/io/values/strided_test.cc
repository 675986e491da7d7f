#include "io/values/strided.h"
#include "io/file/file.h"

#include <gtest/gtest.h>

#include <cstring>

namespace mckpt::impl {
namespace {

void check(std::vector<i64> sizes, std::vector<i64> strides, i64 file_items) {
  std::vector<u8> bytes(static_cast<std::size_t>(file_items) * 4);
  for (u32 i = 0; i < static_cast<u32>(file_items); i++) std::memcpy(bytes.data() + 4 * i, &i, 4);
  std::vector<StridedLoop> loops;
  i64 items = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    loops.push_back({sizes[d], strides[d], items});
    items *= sizes[d];
  }
  std::vector<u8> out(static_cast<std::size_t>(items) * 4), scratch;
  read_strided(MemorySource(bytes), 0, loops, 4, out, scratch);
  EXPECT_LE(scratch.size(), std::size_t{1} << 20);
  for (i64 i = 0; i < items; i++) {
    i64 rest = i, expected = 0;
    for (std::size_t d = sizes.size(); d-- > 0;) {
      expected += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    u32 found;
    std::memcpy(&found, out.data() + 4 * i, 4);
    ASSERT_EQ(found, static_cast<u32>(expected)) << "item " << i;
  }
}

TEST(ReadStrided, TakesLoopsInAnyOrder) {
  check({}, {}, 1);
  check({5}, {3}, 13);
  check({3, 4}, {1, 3}, 12);           // transposed
  check({3, 4, 5}, {4, 1, 12}, 60);    // permuted
  check({3, 4}, {0, 1}, 4);            // expanded
  check({2, 1, 3}, {100, 7, 2}, 105);  // with gaps
}

TEST(ReadStrided, CutsLoopsThatOneReadCannotHold) {
  check({700'001}, {1}, 700'001);
  check({400'000}, {3}, 1'200'000);
  check({3, 200'001}, {1, 3}, 600'003);
  check({600'001, 2}, {2, 1}, 1'200'002);
  check({5}, {300'000}, 1'200'001);  // so thin that items are read one by one
  check({1000, 700}, {1, 1000}, 700'000);
}

}  // namespace
}  // namespace mckpt::impl
