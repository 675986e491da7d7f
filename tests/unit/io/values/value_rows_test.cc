#include "io/values/value_rows.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

// The values of rows [0, 2) x [0, 20), value = 20 * row + column, as text.
class ValueRowsTest : public testing::Test {
 protected:
  ValueRowsTest() {
    std::string data;
    for (int i = 0; i < 40; i++) data += static_cast<char>(i);
    folder_.put("m.safetensors",
                safetensors_file(cat("{", safetensors_entry("w", "U8", "2,20", 0, 40), "}"), data));
    store_ = open_store(folder_.at("m.safetensors"));
  }
  std::string row(const std::vector<SliceRange>& ranges, bool edges, i64 at) {
    ValueRows values(*store_, 0, ranges, edges);
    values.load({at});
    std::string out;
    for (i64 i : values.indexes(1)) out += cat(i < 0 ? "..." : values.text(i, 0), " ");
    return out;
  }

  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(ValueRowsTest, ShowsTheEdgesOfLongDimensions) {
  EXPECT_EQ(row({{0, 2, false}, {0, 20, false}}, true, 1), "20 21 22 ... 37 38 39 ");
  EXPECT_EQ(row({{0, 2, false}, {0, 7, false}}, true, 0), "0 1 2 3 4 5 6 ");
  ValueRows values(*store_, 0, {{0, 2, false}, {0, 20, false}}, true);
  EXPECT_EQ(values.indexes(0), (std::vector<i64>{0, 1}));
}

TEST_F(ValueRowsTest, ASliceShowsAllOfItself) {
  EXPECT_EQ(row({{1, 2, true}, {5, 15, false}}, false, 1), "25 26 27 28 29 30 31 32 33 34 ");
}

}  // namespace
}  // namespace mckpt::impl
