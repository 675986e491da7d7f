#include "io/values/chunk_reader.h"

#include <gtest/gtest.h>

#include "io/file/file.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

std::shared_ptr<const ByteSource> counting_file(std::vector<u8>& bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; i++) bytes.push_back(static_cast<u8>(i));
  return std::make_shared<MemorySource>(bytes);
}

TEST(ChunkReader, LoadsAStridedChunkBoxByBox) {
  std::vector<u8> bytes;
  std::shared_ptr<const ByteSource> file = counting_file(bytes, 210);
  const std::vector<i64> sizes = {5, 6, 7};
  // [6, 7, 5] permuted: item (i, j, k) is at j*35 + k*5 + i.
  ChunkData data{.offset = 0, .dtype = DType::kU8, .strides = {1, 35, 5}};
  for (i64 budget : {1, 6, 7, 20, 42, 100, 1000}) {
    ChunkReader reader(file, data, sizes, budget);
    for (i64 step : {1, 4, 210})
      for (i64 at = 0; at < 210; at += step) {
        std::vector<u8> out(static_cast<std::size_t>(std::min<i64>(step, 210 - at)));
        reader.read(at, out);
        for (std::size_t n = 0; n < out.size(); n++) {
          i64 item = at + static_cast<i64>(n), i = item / 42, j = item / 7 % 6, k = item % 7;
          ASSERT_EQ(out[n], j * 35 + k * 5 + i) << "item " << item << " budget " << budget;
        }
      }
  }
}

TEST(ChunkReader, KnowsStridesThatAreRowMajorAfterAll) {
  std::vector<u8> bytes;
  std::shared_ptr<const ByteSource> file = counting_file(bytes, 12);
  const std::vector<i64> sizes = {3, 1, 4};
  EXPECT_TRUE(ChunkReader(file, {.dtype = DType::kU8, .strides = {4, 77, 1}}, sizes, 100).plain());
  EXPECT_FALSE(ChunkReader(file, {.dtype = DType::kU8, .strides = {1, 77, 3}}, sizes, 100).plain());
}

TEST(ChunkReader, RefusesViewsThatLeaveTheFile) {
  std::vector<u8> bytes;
  std::shared_ptr<const ByteSource> file = counting_file(bytes, 12);
  auto fault = [&](ChunkData data, std::vector<i64> sizes) {
    return thrown_by([&] { ChunkReader(file, data, sizes, 100); });
  };
  EXPECT_EQ(fault({.dtype = DType::kU8, .strides = {4, 1}}, {3, 4}), "nothing");
  EXPECT_EQ(fault({.offset = 100, .dtype = DType::kF32, .strides = {1}}, {0}), "nothing");
  for (const ChunkData& data :
       {ChunkData{.offset = 1, .dtype = DType::kU8, .strides = {4, 1}},
        ChunkData{.dtype = DType::kU8, .strides = {5, 1}}, ChunkData{.offset = -1, .dtype = DType::kU8},
        ChunkData{.offset = INT64_MAX, .dtype = DType::kU8}, ChunkData{.dtype = DType::kF16}})
    EXPECT_EQ(fault(data, {3, 4}).substr(0, 6), "MC1103");
  EXPECT_EQ(fault({.dtype = DType::kU8, .strides = {-4, 1}}, {3, 4}).substr(0, 6), "MC1103");
  EXPECT_EQ(fault({.dtype = DType::kU8, .strides = {INT64_MAX, 1}}, {3, 4}).substr(0, 6), "MC0101");
}

TEST(ChunkReader, SwapsThePartsOfComplexNumbersApart) {
  std::vector<u8> bytes;
  std::shared_ptr<const ByteSource> file = counting_file(bytes, 8);
  const std::vector<i64> sizes = {1};
  std::vector<u8> out(8);
  ChunkReader(file, {.dtype = DType::kC64, .big_endian = true}, sizes, 100).read(0, out);
  EXPECT_EQ(out, (std::vector<u8>{3, 2, 1, 0, 7, 6, 5, 4}));
}

}  // namespace
}  // namespace mckpt::impl
