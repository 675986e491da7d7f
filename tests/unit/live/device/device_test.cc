// The work of one device, against the functions of lib/core that do the same in the host's memory.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hybrid/cp_slice.h"
#include "core/items/apply_move.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"
#include "live/device/device.h"
#include "live/device/memory.h"
#include "live/device/tensor.h"
#include "runtime/modules/module.h"
#include "tests/support/run_samples.h"
#include "tests/support/throws.h"
#include "tests/unit/live/devices.h"

namespace mckpt::impl {
namespace {

DType type_of_width(i64 bytes) {
  for (DType d : {DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kC128})
    if (dtype_info(d).bits == bytes * 8) return d;
  throw Error(Code::kInternal, "no type is so wide").found(bytes);
}

class DeviceTest : public OnDevice {
 protected:
  // Moves of items of one width: each has a stretch of its own on either side, `skew` bytes off a multiple of
  // 16.
  void move_and_check(const std::vector<Move>& moves, i64 item, i64 skew) {
    i64 from_bytes = 64, to_bytes = 64;
    std::vector<i64> from_at, to_at;
    for (const Move& m : moves) {
      from_at.push_back(from_bytes / 16 * 16 + skew);
      to_at.push_back(to_bytes / 16 * 16 + skew);
      from_bytes = from_at.back() + m.source().end() * item + 64;
      to_bytes = to_at.back() + m.destination().end() * item + 64;
    }
    std::vector<u8> from = random_bytes(from_bytes, 7), expected(static_cast<std::size_t>(to_bytes), 0xEE);
    std::vector<ItemCopy> copies;
    std::string what = cat("items of ", item, " bytes, skew ", skew, ":");
    for (std::size_t n = 0; n < moves.size(); n++) {
      const Move& m = moves[n];
      apply_move(m, item, {from.data() + from_at[n], 0}, {expected.data() + to_at[n], 0});
      copies.push_back({from.data() + from_at[n] + m.from * item, expected.data() + to_at[n] + m.to * item,
                        m.length, m.inner, m.outer, no_cast(type_of_width(item))});
      if (n < 3) what += cat(" ", to_string(m));
    }
    scatter_and_check(copies, from, expected, what);
  }
};

TEST_P(DeviceTest, CopiesUpDownAndAlong) {
  for (i64 bytes : {i64{1}, i64{4097}, i64{3} << 20}) {
    std::vector<u8> in = random_bytes(bytes, 3);
    Block a = put(in), b(device_->weights(), bytes + 8);
    lane_->zero(b.data(), b.bytes());
    lane_->copy(a.data(), b.data() + 3, bytes);
    std::vector<u8> expected(static_cast<std::size_t>(b.bytes()));
    std::ranges::copy(in, expected.begin() + 3);
    EXPECT_EQ(get(b.data(), b.bytes()), expected);
  }
}

TEST_P(DeviceTest, NothingIsDoneForNothing) {
  Block b = put(random_bytes(16, 1));
  lane_->upload({}, b.data());
  lane_->download(b.data(), {});
  lane_->copy(b.data(), b.data(), 0);
  lane_->zero(b.data(), 0);
  lane_->scatter({});
  ItemCopy empty{b.data(), b.data(), 0, {}, {}, no_cast(DType::kU8)};
  lane_->scatter({&empty, 1});
  empty.length = 4, empty.outer.count = 0;
  lane_->scatter({&empty, 1});
  EXPECT_EQ(get(b.data(), 16), random_bytes(16, 1));
}

TEST_P(DeviceTest, MovesEveryItemWhereTheMoveSaysAndTouchesNothingElse) {
  std::mt19937 random(5);
  for (i64 item : {1, 2, 4, 8, 16})
    for (i64 skew : {0, 1, 2, 4, 8, 15}) {
      std::vector<Move> moves;
      for (int n = 0; n < 300; n++) {
        moves.push_back(move_of(random_run(random, 200), static_cast<i64>(random() % 5)));
        if (n % 3 == 0) std::swap(moves.back().inner, moves.back().outer);
      }
      move_and_check(moves, item, skew);
    }
}

// Rows, strips, gated halves and transposes large enough for many threads, and for a part at either end that
// is not a whole vector.
TEST_P(DeviceTest, MovesLargeRowsStripsAndTransposes) {
  for (i64 item : {1, 2, 4, 8, 16})
    for (i64 skew : {0, 2, 5, 8})
      for (i64 odd : {0, 1}) {
        i64 width = 512 + odd;
        move_and_check(
            {move_of({0, 3 + odd, 100000 + odd, {}, {}}, 1), move_of({0, 8, width / 2, {width, 150}, {}}, 8),
             move_of({0, 0, 24 + odd, {48 + 2 * odd, 90}, {5000, 3}}, 16 + odd),
             move_of({0, 0, 1, {width, 130}, {1, 257 + odd}}, 0),
             move_of({0, 1, 1, {2 * width, 67}, {2, 60}}, 3)},
            item, skew);
      }
}

TEST_P(DeviceTest, OneLaneFollowsAnother) {
  std::unique_ptr<Lane> other = device_->lane();
  i64 bytes = i64{4} << 20;
  Block a(device_->weights(), bytes), b(device_->weights(), bytes);
  Block staged(device_->staging(), bytes);
  for (int n = 1; n <= 10; n++) {
    std::fill_n(staged.data(), bytes, static_cast<u8>(n));
    lane_->upload({staged.data(), static_cast<std::size_t>(bytes)}, a.data());
    other->follow(*lane_);
    other->copy(a.data(), b.data(), bytes);
    lane_->follow(*other);
    lane_->zero(a.data(), bytes);
    other->wait();
    ASSERT_EQ(get(b.data(), bytes), std::vector<u8>(static_cast<std::size_t>(bytes), static_cast<u8>(n)));
  }
}

TEST_P(DeviceTest, TensorsAreViewsOfItsMemory) {
  if (find_module("torch").empty()) GTEST_SKIP() << "the torch module was not found";
  float values[] = {1, -2.5f, 3e38f};
  Block there = put({reinterpret_cast<const u8*>(values), sizeof values});
  Tensor tensor = Tensor::over(DType::kF32, Shape({3}), there.data(), *device_);
  Tensor::Facts facts = tensor.facts();
  EXPECT_EQ(facts.device, device_->name());
  EXPECT_EQ(facts.bytes.data(), there.data());
}

// Rows are a copy, and whole when they are given: the tensor's memory may go at once.
TEST_P(DeviceTest, RowsOfATensorOutliveIt) {
  if (find_module("torch").empty()) GTEST_SKIP() << "the torch module was not found";
  constexpr i64 kRows = 1 << 20, kBytes = 64;
  const RowRange taken[] = {{kRows / 2, kRows}, {0, 5}};
  std::vector<u8> values = random_bytes(kRows * kBytes, 7);
  for (int time = 0; time < 5; time++) {
    std::optional<Block> there(put(values));
    Tensor rows = Tensor::over(DType::kU8, Shape({kRows, kBytes}), there->data(), *device_).rows(taken);
    lane_->zero(there->data(), there->bytes());
    there.reset();
    std::vector<u8> expected(values.begin() + std::ssize(values) / 2, values.end());
    expected.insert(expected.end(), values.begin(), values.begin() + 5 * kBytes);
    ASSERT_EQ(get(rows.facts().bytes.data(), std::ssize(expected)), expected);
  }
}

TEST_P(DeviceTest, MemoryThatIsNotThereIsToldWithBothNumbers) {
  constexpr i64 kTooMuch = i64{1} << 46;
  for (Memory* memory : {&device_->weights(), &device_->staging()}) {
    for (bool ahead : {true, false}) {
      std::string error =
          thrown_by([&] { ahead ? memory->check_room(kTooMuch) : (void)memory->allocate(kTooMuch); });
      EXPECT_NE(error.find("MC9902"), error.npos) << error;
      EXPECT_NE(error.find(cat("expected ", kTooMuch, " bytes, found ")), error.npos) << error;
      EXPECT_NE(error.find(" bytes free"), error.npos) << error;
    }
    memory->check_room(1);
  }
  // A request that was refused is not remembered.
  Block b = put(random_bytes(100, 2));
  EXPECT_EQ(get(b.data(), 100), random_bytes(100, 2));
}

INSTANTIATE_TEST_SUITE_P(, DeviceTest, kTestDevices, device_label);

}  // namespace
}  // namespace mckpt::impl
