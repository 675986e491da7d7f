#include "convert/compare/differences/compare_sink.h"

#include <gtest/gtest.h>

#include "convert/jobs/chunk_jobs.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

// Two files of 3 MiB. "a" holds tensors 0 and 1 one behind the other, "b" tensor 2, of which tensor 3 is a
// part.
class CompareSinks : public testing::Test {
 protected:
  static constexpr i64 kBytes = 3 << 20, kHalf = kBytes / 2;
  TempFolder folder_;
  TableStore store_{folder_.path()};
  std::vector<u8> bytes_ = std::vector<u8>(kBytes);

  CompareSinks() {
    for (std::size_t i = 0; i < bytes_.size(); i++) bytes_[i] = static_cast<u8>(i * 2654435761u >> 13);
    for (const char* name : {"a", "b"}) {
      folder_.put(name, {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
      store_.add_file(name, kBytes);
    }
    add_tensor("first", DType::kU8, 0, 0, kHalf);
    add_tensor("second", DType::kI32, 0, kHalf, kHalf);
    add_tensor("whole", DType::kU8, 1, 0, kBytes);
    add_tensor("part", DType::kU8, 1, 100, 50);
  }
  void add_tensor(std::string name, DType dtype, i32 file, i64 offset, i64 bytes) {
    i64 items = bytes / dtype_bytes(dtype, 1);
    ChunkData data{.file = file, .offset = offset, .dtype = dtype};
    store_.tensors.push_back({std::move(name), dtype, {items}, {{{0}, {items}, data}}});
  }
  std::span<const u8> part(i64 begin, i64 end) const {
    return std::span(bytes_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }
  // The findings when these bytes of the written files are others.
  std::vector<CompareSink::Difference> found(i32 file, std::vector<i64> changed, i64 begin = 0) {
    NamedChunks chunks(store_, store_);
    CompareSink sink(store_, chunks, CompareSink::Places::kFirst);
    for (i64 at : changed) bytes_[static_cast<std::size_t>(at)] ^= 1;
    sink.write(file, begin, part(begin, kBytes));
    for (i64 at : changed) bytes_[static_cast<std::size_t>(at)] ^= 1;
    return sink.differences();
  }
};

TEST_F(CompareSinks, FindNothingWhereNothingDiffers) {
  for (i64 begin : {i64{0}, i64{1}, i64{4095}, i64{262'143}, kBytes - 1})
    EXPECT_TRUE(found(1, {}, begin).empty());
}

TEST_F(CompareSinks, NameTheFirstByteThatDiffers) {
  for (i64 at : {i64{0}, i64{1}, i64{4096}, i64{262'144}, i64{1'000'003}, kBytes - 1}) {
    for (i64 begin : {i64{0}, at}) {
      std::vector<CompareSink::Difference> differences = found(1, {at}, begin);
      ASSERT_EQ(differences.size(), 1u) << at;
      EXPECT_EQ(differences[0].key, 2);
      EXPECT_EQ(differences[0].file, 1);
      EXPECT_EQ(differences[0].offset, at);
      EXPECT_EQ(differences[0].item, at);
    }
  }
}

TEST_F(CompareSinks, NameEveryTensorOfAStretchThatDiffers) {
  std::vector<CompareSink::Difference> differences = found(0, {kHalf - 1, kHalf + 9, kHalf + 20});
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, 0);
  EXPECT_EQ(differences[0].item, kHalf - 1);
  EXPECT_EQ(differences[1].key, 1);
  EXPECT_EQ(differences[1].offset, kHalf + 9);
  EXPECT_EQ(differences[1].item, 2);
}

TEST_F(CompareSinks, NameEveryTensorThatHasTheByte) {
  std::vector<CompareSink::Difference> differences = found(1, {100, 150});
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key + differences[1].key, 2 + 3);
  EXPECT_EQ(found(1, {150}).size(), 1u);
}

TEST_F(CompareSinks, GiveDifferencesInTheOrderOfTheFilesAndTheFirstOfEachTensor) {
  NamedChunks chunks(store_, store_);
  CompareSink sink(store_, chunks, CompareSink::Places::kFirst);
  for (auto [file, at] : {std::pair{1, 900}, {0, 500}, {1, 300}, {1, 700}}) {
    u8 other = static_cast<u8>(~bytes_[static_cast<std::size_t>(at)]);
    sink.write(file, at, {&other, 1});
  }
  std::vector<CompareSink::Difference> differences = sink.differences();
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].offset, 500);
  EXPECT_EQ(differences[1].offset, 300);
}

TEST_F(CompareSinks, DoNotWantTheRestOfTensorsThatDifferWhereTheyAreCounted) {
  NamedChunks chunks(store_, store_);
  CompareSink counted(store_, chunks, CompareSink::Places::kCounted),
      first(store_, chunks, CompareSink::Places::kFirst);
  EXPECT_TRUE(counted.wants(0, 0, kBytes));
  u8 other = static_cast<u8>(~bytes_[7]);
  counted.write(0, 7, {&other, 1});
  first.write(0, 7, {&other, 1});
  EXPECT_FALSE(counted.wants(0, 8, kHalf - 8));
  EXPECT_TRUE(counted.wants(0, 8, kHalf));  // the first byte of the next tensor is in it
  EXPECT_TRUE(counted.wants(1, 8, 8));
  EXPECT_TRUE(first.wants(0, 8, 8));
}

// Items of 2 bytes from an odd offset on: one of them is cut by the end of the 256 KiB that are compared at once.
TEST_F(CompareSinks, TakeEveryNaNForAnotherOnlyWhereItemsAreCast) {
  TableStore store(folder_.path());
  std::vector<u8> written(600'001, 0x7e), there(600'001, 0xff);  // NaN of float16, with other bits
  written[0] = there[0] = 7;
  folder_.put("nan", {reinterpret_cast<const char*>(there.data()), there.size()});
  store.add_file("nan", 600'001);
  ChunkData data{.file = 0, .offset = 1, .dtype = DType::kF16};
  store.tensors.push_back({"w", DType::kF16, {300'000}, {{{0}, {300'000}, data}}});
  NamedChunks chunks(store, store);
  auto differences = [&](bool cast) {
    CompareSink sink(store, chunks, CompareSink::Places::kFirst, [=](i32) { return cast; });
    sink.write(0, 1, std::span<const u8>(written).subspan(1));
    return sink.differences();
  };
  EXPECT_TRUE(differences(true).empty());
  EXPECT_EQ(differences(false).at(0).item, 0);
  written[262'144] = 0x3c;  // the upper byte of item 131,071, whose lower one ends the piece before: no NaN
  ASSERT_EQ(differences(true).size(), 1u);
  EXPECT_EQ(differences(true)[0].item, 131'071);
}

TEST_F(CompareSinks, DoNotReadBehindTheEnd) {
  NamedChunks chunks(store_, store_);
  CompareSink sink(store_, chunks, CompareSink::Places::kFirst);
  EXPECT_NE(thrown_by([&] { sink.write(0, kBytes - 1, part(0, 2)); }), "nothing");
}

}  // namespace
}  // namespace mckpt::impl
