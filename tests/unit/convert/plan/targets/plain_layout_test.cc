// The buckets of a distributed optimizer as a folder of other ranks: each keeps its chunks, which are read once.
#include "convert/plan/targets/plain_layout.h"

#include <gtest/gtest.h>

#include <tuple>

#include "core/base/error.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace plain_layout_test {

class CountingStore : public TableStore {
 public:
  using TableStore::TableStore;
  Chunk chunk(i64 t, i64 i) const override {
    asked++;
    return TableStore::chunk(t, i);
  }
  mutable i64 asked = 0;
};

TEST(PlainLayout, ReadsTheChunksOfABucketOnceForAllRanks) {
  CountingStore store("memory");
  for (const char* state : {"param", "exp_avg"}) {
    TableStore::Tensor bucket;
    bucket.name =
        std::string("optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_x.bucket_idx_0.") + state;
    bucket.dims = {256};
    for (i64 begin = 0; begin < 256; begin += 64) {
      bucket.pieces.push_back({{begin}, {40}, {}, 0});
      bucket.pieces.push_back({{begin + 40}, {24}, {}, 0});
    }
    store.tensors.push_back(std::move(bucket));
  }
  const PlainLayout plain(store, 3, false, PlainLayout::Naming(), PlainLayout::Typing());
  EXPECT_EQ(store.asked, 16);
  // 256 items over three ranks: shares of 86, 86 and 84 items. A stretch goes where it begins.
  std::vector<std::tuple<i32, i32, i64, i64>> chunks;  // key, rank, begin, items
  for (i64 c = 0; c < plain.layout.chunk_count(); c++) {
    const DcpLayout::Chunk chunk = plain.layout.chunk(c);
    chunks.emplace_back(chunk.key, chunk.rank, chunk.offsets[0], chunk.sizes[0]);
  }
  const std::vector<std::tuple<i32, i32, i64, i64>> expected{
      {0, 0, 0, 40},   {0, 0, 40, 24},  {0, 0, 64, 40},  {1, 0, 0, 40},   {1, 0, 40, 24},  {1, 0, 64, 40},
      {0, 1, 104, 24}, {0, 1, 128, 40}, {0, 1, 168, 24}, {1, 1, 104, 24}, {1, 1, 128, 40}, {1, 1, 168, 24},
      {0, 2, 192, 40}, {0, 2, 232, 24}, {1, 2, 192, 40}, {1, 2, 232, 24}};
  EXPECT_EQ(chunks, expected);
}

TEST(PlainLayout, NamesTheTensorsThatNoRecordCanHave) {
  TableStore store("memory");
  for (auto [name, dtype] : {std::pair("w", DType::kF32), std::pair("q", DType::kQI8)}) {
    TableStore::Tensor t;
    t.name = name, t.dtype = dtype, t.dims = {4};
    t.pieces.push_back({{0}, {4}, {}, 0});
    store.tensors.push_back(std::move(t));
  }
  try {
    PlainLayout(store, 1, false, PlainLayout::Naming(), PlainLayout::Typing());
    FAIL() << "a quantised tensor was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNotHeld);
    EXPECT_EQ(e.message(), "1 tensor cannot be stored in a DCP folder");
    EXPECT_EQ(e.file(), "memory");
    ASSERT_EQ(e.notes().size(), 1u);
    EXPECT_EQ(e.notes()[0], "'q': a tensor of qint8 has a scheme of scales, which mckpt does not write");
    EXPECT_NE(e.help().find("tensor.dequantize()"), std::string::npos);
  }
}

}  // namespace plain_layout_test
}  // namespace mckpt::impl
