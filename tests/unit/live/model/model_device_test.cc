// The requests of a live model to its device, seen by one that only keeps account of it.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "live/model/group.h"
#include "mappings/model/parameter.h"
#include "runtime/comm/comm.h"
#include "tests/support/throws.h"
#include "tests/unit/live/late_lane.h"
#include "tests/unit/live/live_rank.h"

namespace mckpt::impl {
namespace {

// Knows after how many of the job's gathers its next work begins. Everything is done at once all the same.
class OrderedLane final : public Lane {
 public:
  explicit OrderedLane(std::unique_ptr<Lane> host) : host_(std::move(host)) {}
  void upload(std::span<const u8> from, u8* to) override { host_->upload(from, to); }
  void download(const u8* from, std::span<u8> to) override { host_->download(from, to); }
  void copy(const u8* from, u8* to, i64 bytes) override { host_->copy(from, to, bytes); }
  void zero(u8* at, i64 bytes) override { host_->zero(at, bytes); }
  void scatter(std::span<const ItemCopy> copies) override { host_->scatter(copies); }
  void follow(Lane& other) override { behind = std::max(behind, dynamic_cast<OrderedLane&>(other).behind); }
  void wait() override { host_->wait(); }
  bool done() override { return host_->done(); }

  int behind = 0;

 private:
  std::unique_ptr<Lane> host_;
};

struct Account {
  std::vector<int> connected;  // of how many ranks each
  int gathers = 0, out_of_order = 0;
  std::vector<i64> asked;   // of check_room
  i64 most = i64{1} << 60;  // that there is
};

class CountedRanks final : public DeviceRanks {
 public:
  CountedRanks(std::unique_ptr<DeviceRanks> host, Account& account)
      : host_(std::move(host)), account_(account) {}
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) override {
    int& behind = dynamic_cast<OrderedLane&>(lane).behind;
    account_.out_of_order += behind != account_.gathers;
    behind = ++account_.gathers;
    host_->all_gather(lane, mine, all);
  }
  void exchange(Lane& lane, std::span<const Part> sends, std::span<const Part> receives) override {
    host_->exchange(lane, sends, receives);
  }
  void wait(Lane& lane) override { host_->wait(lane); }

 private:
  std::unique_ptr<DeviceRanks> host_;
  Account& account_;
};

class AskedMemory final : public Memory {
 public:
  AskedMemory(HostMemory& host, Account& account) : host_(host), account_(account) {}
  u8* allocate(i64 bytes) override { return host_.allocate(bytes); }
  void check_room(i64 bytes) const override {
    account_.asked.push_back(bytes);
    if (bytes > account_.most) throw Error(Code::kOutOfMemory, "there is not so much");
  }
  void release(u8* data) override { host_.release(data); }

 private:
  HostMemory& host_;
  Account& account_;
};

class AccountedDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  Memory& weights() override { return weights_; }
  Memory& staging() override { return host_.staging(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Lane> lane() override { return std::make_unique<OrderedLane>(host_.lane()); }
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override {
    account.connected.push_back(comm.size());
    return std::make_unique<CountedRanks>(host_.ranks(comm), account);
  }
  i64 held_bytes() { return host_.weights().held_bytes(); }

  Account account;

 private:
  HostDevice host_;
  AskedMemory weights_{host_.weights(), account};
};

class LateDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  Memory& weights() override { return host_.weights(); }
  Memory& staging() override { return host_.staging(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Lane> lane() override { return std::make_unique<LateLane>(host_.lane(), counts_); }
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override { return host_.ranks(comm); }

 private:
  HostDevice host_;
  LaneCounts counts_;
};

// Without shards nothing is gathered, so that nobody waits for what makes the compute weights but refresh.
TEST(LiveModelOnADevice, RefreshedWeightsAreThereWhenRefreshReturns) {
  LateDevice device;
  HostMemory gathered;
  LiveModel m(map_of("qwen3_moe"), setup_of("qwen3_moe", Strategy::kNoShard), world(), device, gathered);
  m.wrap();
  for (u16 salt : {u16{1}, u16{7}}) {
    fill(m, salt);
    m.unshard(0);
    for (i32 p = 0; p < static_cast<i32>(m.parameters().size()); p++) {
      const ModelParameter& parameter = m.parameters()[static_cast<std::size_t>(p)];
      if (parameter.buffer()) continue;
      ASSERT_EQ(first_wrong(m, p, salt), -1) << parameter.name;
    }
    m.reshard(0);
  }
}

// Dense weights and experts are gathered by two communicators.
TEST(LiveModelOnADevice, OneGatherBeginsWhenTheOneBeforeHasEnded) {
  for (Strategy strategy : {Strategy::kOptim, Strategy::kOptimGradsParams}) {
    Grid grid{.ep = world().size() % 2 == 0 ? 2 : 1};
    AccountedDevice device;
    HostMemory gathered;
    LiveModel m(map_of("qwen3_moe"), setup_of("qwen3_moe", strategy, grid), world(), device, gathered);
    m.wrap();
    fill(m);
    const std::vector<i32>& modules = m.sharded_modules();
    for (std::size_t i = 0; i < modules.size(); i++) {
      m.unshard(modules[i]);
      if (i + 1 < modules.size()) m.prefetch(modules[i + 1]);
      m.reshard(modules[i]);
    }
    i64 received = m.received_bytes(), crossed = 0;
    for (LiveGroup* group : m.groups())
      crossed += 2 * (group->buffer().bucket_items - group->stored_items().items());
    EXPECT_EQ(device.account.out_of_order, 0);
    EXPECT_EQ(received, crossed) << strategy_name(strategy);
    EXPECT_TRUE(device.account.gathers >= 2 || world().size() == 1);
  }
}

TEST(LiveModelOnADevice, RanksAreConnectedOnceForEachSet) {
  int ranks = world().size();
  auto connected = [&](const Grid& grid) {
    AccountedDevice device;
    HostMemory gathered;
    LiveModel m(map_of("qwen3_moe"), setup_of("qwen3_moe", Strategy::kOptimGradsParams, grid), world(),
                device, gathered);
    m.wrap();
    fill(m);
    m.unshard(0);
    EXPECT_EQ(m.host_ranks().size(), ranks);
    return device.account.connected;
  };
  EXPECT_EQ(connected({}), (std::vector<int>{ranks}));  // dense weights and experts over all
  if (ranks % 2 != 0) return;
  EXPECT_EQ(connected({.ep = 2}).size(), 2u);  // experts have their own
  if (ranks != 4) return;
  EXPECT_EQ(connected({.tp = 2, .ep = 4}), (std::vector<int>{4, 2, 1}));
}

// Memory that is granted and not used yet is still counted as free, so to ask piece by piece would be in
// vain.
TEST(LiveModelOnADevice, MemoryIsAskedForAtOnceForAllRanksOfTheHost) {
  AccountedDevice device;
  HostMemory gathered;
  LiveModel m(map_of("nemotron_h"), setup_of("nemotron_h"), world(), device, gathered);
  m.wrap();
  m.allocate();
  i64 all = device.held_bytes();
  world().all_reduce({&all, 1}, Reduce::kSum);
  EXPECT_EQ(device.account.asked, std::vector<i64>{all});
  EXPECT_EQ(m.weight_bytes(), device.held_bytes());
  m.allocate();  // it is there
  EXPECT_EQ(device.account.asked.size(), 1u);
  m.drop();
  device.account.most = all - 1;
  EXPECT_NE(thrown_by([&] { m.allocate(); }).find("there is not so much"), std::string::npos);
  EXPECT_EQ(device.held_bytes(), 0);
}

}  // namespace
}  // namespace mckpt::impl
