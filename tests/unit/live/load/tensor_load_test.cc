// Places of loaded tensors, and that blocks live as long as somebody needs them.
#include "live/load/tensor_load.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "io/store/store.h"
#include "live/device/device.h"
#include "live/load/block_loader.h"
#include "live/load/block_places.h"

namespace mckpt::impl {
namespace {

TEST(BlockPlaces, TensorsFollowEachOtherInBlocks) {
  TensorLoad load;
  BlockPlaces places(load);
  const i64 most = BlockPlaces::kBlockBytes;
  auto add = [&](i64 bytes) {
    const TensorLoad::Tensor& t = places.add("t", DType::kU8, Shape({bytes}), bytes);
    return std::pair(t.block, t.offset);
  };
  using P = std::pair<i32, i64>;
  EXPECT_EQ(add(1000), P(0, 0));
  EXPECT_EQ(add(1), P(0, 1024));  // at the next multiple of 256
  EXPECT_EQ(add(0), P(-1, 0));    // no memory
  EXPECT_EQ(add(256), P(0, 1280));
  EXPECT_EQ(add(most - 1536), P(0, 1536));  // exactly full
  EXPECT_EQ(add(5), P(1, 0));
  EXPECT_EQ(add(3 * most), P(2, 0));  // larger than a block: one of its own
  EXPECT_EQ(add(7), P(3, 0));
  EXPECT_EQ(load.block_bytes, (std::vector<i64>{most, 5, 3 * most, 7}));
  EXPECT_EQ(load.bytes, 1000 + 1 + 256 + most - 1536 + 5 + 3 * most + 7);
}

const std::string kModel = MCKPT_TEST_DATA "/models/tiny_qwen3_moe";

TEST(TensorLoad, ABlockIsFreedWithItsLastTensor) {
  std::unique_ptr<Store> store = open_store(kModel);
  std::vector<i64> all = file_order(*store);
  auto device = std::make_shared<HostDevice>();
  TensorLoad plan = plan_tensors(*store, all, std::nullopt);
  EXPECT_EQ(plan.tensors.front().dtype, DType::kBF16);
  TensorLoad cast = plan_tensors(*store, all, DType::kF32);
  EXPECT_EQ(cast.tensors.front().dtype, DType::kF32);
  EXPECT_EQ(cast.bytes, 2 * plan.bytes);
  const i64 bytes = plan.block_bytes.front();
  std::shared_ptr<u8> kept;
  {
    LoadedTensors loaded = load_tensors(std::move(plan), device, {.threads = 2});
    EXPECT_EQ(loaded.tensors.size(), all.size());
    EXPECT_EQ(device->weights().held_bytes(), bytes);
    kept = loaded.data(loaded.tensors.back());
  }
  EXPECT_EQ(device->weights().held_bytes(), bytes);
  EXPECT_EQ(device->staging().held_bytes(), 0);
  HostMemory& memory = device->weights();
  HostDevice& held = *device;
  device.reset();  // the block keeps its device
  EXPECT_EQ(&held.weights(), &memory);
  EXPECT_EQ(memory.held_bytes(), bytes);
  kept.reset();
}

}  // namespace
}  // namespace mckpt::impl
