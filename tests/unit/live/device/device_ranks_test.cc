// Devices of ranks together, with any number of ranks.
#include <gtest/gtest.h>

#include "live/device/host_ranks.h"
#include "live/device/memory.h"
#include "runtime/comm/comm.h"
#include "tests/support/job.h"
#include "tests/unit/live/devices.h"

namespace mckpt::impl {
namespace {

// Byte i of part n that goes from one rank to another.
u8 byte_of(int from, int to, i64 part, i64 i) { return static_cast<u8>(from * 61 + to * 17 + part * 7 + i); }

// Parts of a pair: none for some pairs, else several, with empty ones among them.
std::vector<i64> parts_between(int from, int to) {
  if ((from + 2 * to) % 5 == 2) return {};
  std::vector<i64> sizes = {0, 1000 + from * 10 + to, 3, 0, 70001};
  sizes.resize(static_cast<std::size_t>(2 + (from + to) % 4));
  return sizes;
}

class DeviceRanksTest : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped()) ranks_ = device_->ranks(world());
  }

  void exchange_and_check(DeviceRanks& ranks) {
    int me = ranks.rank();
    std::vector<Block> memory;
    std::vector<DeviceRanks::Part> sends, receives;
    for (int peer = ranks.size() - 1; peer >= 0; peer--) {
      if (peer == me) continue;
      i64 n = 0;
      for (i64 size : parts_between(me, peer)) {
        std::vector<u8> bytes(static_cast<std::size_t>(size));
        for (i64 i = 0; i < size; i++) bytes[static_cast<std::size_t>(i)] = byte_of(me, peer, n, i);
        memory.push_back(put(bytes));
        sends.push_back({peer, memory.back().data(), size});
        n++;
      }
      for (i64 size : parts_between(peer, me)) {
        memory.push_back(Block(device_->weights(), std::max<i64>(1, size)));
        receives.push_back({peer, memory.back().data(), size});
      }
    }
    ranks.exchange(*lane_, sends, receives);
    ranks.wait(*lane_);
    std::vector<i64> next(static_cast<std::size_t>(ranks.size()));
    for (const DeviceRanks::Part& part : receives) {
      i64 n = next[static_cast<std::size_t>(part.rank)]++;
      std::vector<u8> bytes = get(part.data, part.bytes);
      for (i64 i = 0; i < part.bytes; i++)
        ASSERT_EQ(bytes[static_cast<std::size_t>(i)], byte_of(part.rank, me, n, i))
            << "byte " << i << " of part " << n << " from rank " << part.rank;
    }
  }

  std::unique_ptr<DeviceRanks> ranks_;
};

TEST_P(DeviceRanksTest, AreTheRanksOfTheJob) {
  EXPECT_EQ(ranks_->rank(), world().rank());
  EXPECT_EQ(ranks_->size(), world().size());
}

TEST_P(DeviceRanksTest, GatherFromAPlaceOfItsOwnAndInPlace) {
  int me = ranks_->rank(), size = ranks_->size();
  for (i64 bytes : {i64{1}, i64{13}, i64{100003}})
    for (bool in_place : {false, true}) {
      std::vector<u8> mine(static_cast<std::size_t>(bytes));
      for (i64 i = 0; i < bytes; i++) mine[static_cast<std::size_t>(i)] = byte_of(me, 0, bytes, i);
      Block own = put(mine), all(device_->weights(), bytes * size);
      u8* begin = in_place ? all.data() + me * bytes : own.data();
      if (in_place) lane_->copy(own.data(), begin, bytes);
      ranks_->all_gather(*lane_, {begin, mine.size()}, {all.data(), static_cast<std::size_t>(all.bytes())});
      ranks_->wait(*lane_);
      std::vector<u8> got = get(all.data(), all.bytes());
      for (i64 i = 0; i < all.bytes(); i++)
        ASSERT_EQ(got[static_cast<std::size_t>(i)], byte_of(static_cast<int>(i / bytes), 0, bytes, i % bytes))
            << i << " of " << bytes << (in_place ? " in place" : "");
    }
}

TEST_P(DeviceRanksTest, ExchangePartsInTheOrderTheyWereSent) {
  for (int again = 0; again < 3; again++) exchange_and_check(*ranks_);
}

TEST_P(DeviceRanksTest, ExchangeNothing) {
  ranks_->exchange(*lane_, {}, {});
  ranks_->wait(*lane_);
}

INSTANTIATE_TEST_SUITE_P(, DeviceRanksTest, kTestDevices, device_label);

class HostRanksTest : public DeviceRanksTest {};

TEST_P(HostRanksTest, ExchangeInRoundsOfAnySize) {
  for (i64 round : {i64{4}, i64{1000}, i64{4096}}) {
    std::unique_ptr<DeviceRanks> cut = host_ranks(world(), round * 100);
    exchange_and_check(*cut);
  }
}

INSTANTIATE_TEST_SUITE_P(, HostRanksTest, testing::Values("cpu"), device_label);

}  // namespace
}  // namespace mckpt::impl
