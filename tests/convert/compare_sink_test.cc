#include "convert/compare_sink.h"

#include <gtest/gtest.h>

#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt {
namespace {

class CompareSinks : public testing::Test {
 protected:
  static constexpr i64 kBytes = 3 << 20;
  TempFolder folder_;
  TableStore store_{folder_.path()};
  std::vector<u8> bytes_ = std::vector<u8>(kBytes);

  CompareSinks() {
    for (std::size_t i = 0; i < bytes_.size(); i++) bytes_[i] = static_cast<u8>(i * 2654435761u >> 13);
    for (const char* name : {"a", "b"}) {
      folder_.put(name, {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
      store_.add_file(name, kBytes);
    }
  }
  std::span<const u8> part(i64 begin, i64 end) const {
    return std::span(bytes_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }
};

TEST_F(CompareSinks, FindNothingWhereNothingDiffers) {
  CompareSink sink(store_);
  for (i64 begin : {i64{0}, i64{1}, i64{4095}, i64{262'143}, kBytes - 1})
    sink.write(1, begin, part(begin, kBytes));
  sink.write(0, 17, {});
  EXPECT_TRUE(sink.differences().empty());
}

TEST_F(CompareSinks, NameTheFirstByteThatDiffers) {
  for (i64 at : {i64{0}, i64{1}, i64{4096}, i64{262'144}, i64{1'000'003}, kBytes - 1}) {
    for (i64 begin : {i64{0}, at}) {
      CompareSink sink(store_);
      bytes_[static_cast<std::size_t>(at)] ^= 1;
      sink.write(1, begin, part(begin, kBytes));
      bytes_[static_cast<std::size_t>(at)] ^= 1;
      std::vector<CompareSink::Difference> found = sink.differences();
      ASSERT_EQ(found.size(), 1u) << at;
      EXPECT_EQ(found[0].file, 1);
      EXPECT_EQ(found[0].offset, at);
      EXPECT_GT(found[0].end, at);
    }
  }
}

TEST_F(CompareSinks, GiveDifferencesInTheOrderOfTheFiles) {
  CompareSink sink(store_);
  u8 other = static_cast<u8>(~bytes_[500]);
  sink.write(1, 500, {&other, 1});
  other = static_cast<u8>(~bytes_[900]);
  sink.write(0, 900, {&other, 1});
  other = static_cast<u8>(~bytes_[300]);
  sink.write(1, 300, {&other, 1});
  std::vector<CompareSink::Difference> found = sink.differences();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].offset, 900);
  EXPECT_EQ(found[1].offset, 300);
  EXPECT_EQ(found[2].offset, 500);
}

TEST_F(CompareSinks, DoNotReadBehindTheEnd) {
  CompareSink sink(store_);
  EXPECT_NE(thrown_by([&] { sink.write(0, kBytes - 1, part(0, 2)); }), "nothing");
}

}  // namespace
}  // namespace mckpt
