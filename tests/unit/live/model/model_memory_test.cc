// The live model's memory: what is there when, gathering and releasing, writes that are under way; with any
// number of ranks.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "live/device/device.h"
#include "live/device/kept_memory.h"
#include "live/model/group.h"
#include "live/model/pending_writes.h"
#include "mappings/family.h"
#include "mappings/model/parameter.h"
#include "runtime/comm/comm.h"
#include "tests/support/throws.h"
#include "tests/unit/live/live_rank.h"

namespace mckpt::impl {
namespace {

TEST(LiveModel, HasNoMemoryBeforeItIsLoaded) {
  for (const char* name : {"deepseek_v3", "gpt_oss", "nemotron_h_moe", "qwen3_5_moe_mtp", "qwen3_vl"}) {
    LiveRank rank(map_of(name), setup_of(name, Strategy::kNoShard));
    rank.model.wrap();
    EXPECT_EQ(rank.storage.peak_bytes() + rank.gathered.peak_bytes(), 0) << name;
    for (std::size_t p = 0; p < rank.model.parameters().size(); p++) {
      Tensor::Facts facts = rank.model.tensor(static_cast<i32>(p)).facts();
      EXPECT_TRUE(facts.meta);
      EXPECT_EQ(facts.shape, rank.model.parameters()[p].shape());
      EXPECT_EQ(facts.dtype, rank.model.parameters()[p].dtype);
      EXPECT_EQ(rank.model.stored_shard(static_cast<i32>(p)), std::nullopt);
    }
    EXPECT_NE(thrown_by([&] { rank.model.unshard(0); }).find("no weights yet"), std::string::npos);
  }
}

TEST(LiveModel, GathersWhatEveryRankHas) {
  const Grid grids[] = {{},
                        {.tp = 2},
                        {.ep = 2},
                        {.tp = 2, .ep = 2},
                        {.cp = 2, .ep = 2},
                        {.hsdp = 2},
                        {.hsdp = 2, .outer = HsdpOuter::kShard}};
  int looked_at = 0;
  for (const char* name : {"qwen3_moe", "tiny_moe1"})
    for (const Grid& grid : grids)
      for (Strategy strategy : kStrategies) {
        bool shards_outer = grid.outer == HsdpOuter::kShard && strategy != Strategy::kOptimGradsParams;
        bool experts = map_of(name).model().moe.experts > 0;
        if (!fits_world(grid) || shards_outer || (grid.ep > 1 && !experts)) continue;
        LiveRank rank(map_of(name), setup_of(name, strategy, grid));
        LiveModel& m = rank.model;
        m.wrap();
        for (u16 salt : {u16{0}, u16{5}}) {
          fill(m, salt);
          for (i32 module : m.sharded_modules()) {
            for (int again = 0; again < 2; again++) {
              m.unshard(module);
              for (const auto& group : m.groups_of(module))
                for (i64 p : group->bucket().members)
                  ASSERT_EQ(first_wrong(m, static_cast<i32>(p), salt), -1)
                      << name << " " << to_string(grid) << " " << strategy_name(strategy) << " "
                      << m.parameters()[static_cast<std::size_t>(p)].name;
              m.reshard(module);
            }
          }
        }
        for (std::size_t p = 0; p < m.parameters().size(); p++)
          EXPECT_EQ(m.tensor(static_cast<i32>(p)).facts().meta, !m.parameters()[p].buffer());
        looked_at++;
      }
  EXPECT_GE(looked_at, 8);
}

TEST(LiveModel, ShardsOfNoItemsHoldNoTensor) {
  LiveRank rank(map_of("tiny_moe1"), setup_of("tiny_moe1"));
  LiveModel& m = rank.model;
  m.wrap();
  fill(m);
  std::vector<i64> items(m.parameters().size());
  i64 without = 0;
  for (std::size_t p = 0; p < items.size(); p++) {
    if (m.parameters()[p].buffer()) continue;
    std::optional<Tensor> shard = m.stored_shard(static_cast<i32>(p));
    items[p] = shard ? shard->facts().shape.items() : 0;
    EXPECT_TRUE(!shard || items[p] > 0);
    without += !shard;
  }
  world().all_reduce(items, Reduce::kSum);
  world().all_reduce({&without, 1}, Reduce::kSum);
  for (std::size_t p = 0; p < items.size(); p++)
    EXPECT_TRUE(m.parameters()[p].buffer() || items[p] == m.parameters()[p].shape().items());
  EXPECT_EQ(without > 0, world().size() > 1);
}

class LiveModelOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Family, LiveModelOf, testing::Values("qwen3_moe", "nemotron_h", "qwen3_next"));

TEST_P(LiveModelOf, TakesNoMoreThanOneModuleAboveItsShards) {
  for (Strategy strategy : kStrategies) {
    LiveRank rank(map_of(GetParam()), setup_of(GetParam(), strategy));
    LiveModel& m = rank.model;
    m.wrap();
    fill(m);
    i64 largest = 0, stored = 0;
    for (i32 module : m.sharded_modules()) {
      i64 bytes = 0;
      for (const auto& group : m.groups_of(module)) {
        i64 bucket = group->buffer().bucket_items, shard = group->stored_items().items();
        bool whole = strategy != Strategy::kOptimGradsParams;
        stored += 2 * (whole ? bucket : shard) + 4 * shard;
        if (!whole && world().size() > 1) bytes += 2 * bucket;
      }
      largest = std::max(largest, bytes);
    }
    EXPECT_EQ(rank.storage.held_bytes(), stored) << strategy_name(strategy);
    for (i32 module : m.sharded_modules()) {
      m.unshard(module);
      m.reshard(module);
    }
    EXPECT_EQ(rank.gathered.peak_bytes(), largest) << strategy_name(strategy);
    EXPECT_EQ(rank.gathered.held_bytes(), 0);
    EXPECT_EQ(rank.storage.peak_bytes(), stored);
    m.drop();
    EXPECT_EQ(rank.storage.held_bytes(), 0);
  }
}

TEST(LiveModel, RepeatedPassesAllocateNothing) {
  HostDevice device;
  HostMemory host;
  KeptMemory gathered(host);
  LiveModel m(map_of("qwen3_moe"), setup_of("qwen3_moe"), world(), device, gathered);
  m.wrap();
  fill(m);
  i64 largest = 0, after_first = 0;
  for (int pass = 0; pass < 3; pass++) {
    m.unshard(0);  // the embedding stays while the layers come and go
    for (i32 module : m.sharded_modules()) {
      m.unshard(module);
      for (const auto& group : m.groups_of(module)) {
        largest = std::max(largest, 2 * group->buffer().bucket_items);
        for (i64 p : group->bucket().members) ASSERT_EQ(first_wrong(m, static_cast<i32>(p)), -1) << pass;
      }
      if (module != 0) m.reshard(module);
    }
    m.reshard(0);
    if (pass == 0) after_first = gathered.most_held_bytes();
  }
  EXPECT_EQ(after_first > 0, world().size() > 1);  // alone there is nothing to gather
  EXPECT_EQ(gathered.most_held_bytes(), after_first);
  EXPECT_EQ(host.peak_bytes(), after_first);
  EXPECT_LE(after_first, 3 * largest);  // the embedding, and the dense part and the experts of one layer
}

TEST(LiveModel, LiveParametersDoNotOverlap) {
  LiveRank rank(map_of("qwen3_next"), setup_of("qwen3_next"));
  LiveModel& m = rank.model;
  m.wrap();
  fill(m);
  for (i32 module : m.sharded_modules()) m.unshard(module);
  std::map<const u8*, const u8*> taken;  // begin -> end
  for (std::size_t p = 0; p < m.parameters().size(); p++) {
    std::span<u8> bytes = m.tensor(static_cast<i32>(p)).facts().bytes;
    auto next = taken.upper_bound(bytes.data());
    EXPECT_TRUE(next == taken.end() || bytes.data() + bytes.size() <= next->first);
    EXPECT_TRUE(next == taken.begin() || std::prev(next)->second <= bytes.data());
    taken.emplace(bytes.data(), bytes.data() + bytes.size());
  }
  EXPECT_EQ(taken.size(), m.parameters().size());
  for (i32 module : m.sharded_modules()) m.reshard(module);
}

TEST(LiveModel, WaitsForWritesThatAreUnderWay) {
  LiveRank rank(map_of("qwen3_dense"), setup_of("qwen3_dense", Strategy::kOptimGradsParams));
  LiveModel& m = rank.model;
  m.wrap();
  fill(m, 1);
  i32 layer = m.modules().find("decoder.layers.1");
  LiveGroup& group = *m.groups_of(layer).at(0);
  std::jthread writer([write = group.writes().begin(), &group]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    fill(group, 9);
    write.done();
  });
  group.begin_refresh();
  group.finish_refresh();
  m.unshard(layer);
  EXPECT_EQ(first_wrong(m, parameter_named(m, "decoder.layers.1.mlp.linear_fc2.weight"), 9), -1);
  m.reshard(layer);
}

TEST(LiveModel, MemoryIsNotGivenBackUnderAWriter) {
  LiveRank rank(map_of("qwen3_dense"), setup_of("qwen3_dense"));
  LiveModel& m = rank.model;
  m.wrap();
  i32 layer = m.modules().find("decoder.layers.1");
  for (bool anew : {false, true}) {
    m.allocate();
    LiveGroup& group = *m.groups_of(layer).at(0);
    std::atomic<bool> written = false;
    std::jthread writer([write = group.writes().begin(), &group, &written]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      fill(group, 9);
      written = true;
      write.done();
    });
    anew ? m.fully_shard(layer) : m.drop();
    EXPECT_TRUE(written);
  }
}

TEST(LiveModel, HalfWrittenWeightsAreNotGathered) {
  LiveRank rank(map_of("qwen3_dense"), setup_of("qwen3_dense"));
  LiveModel& m = rank.model;
  m.wrap();
  fill(m);
  i32 layer = m.modules().find("decoder.layers.0");
  PendingWrites& writes = m.groups_of(layer).at(0)->writes();
  { PendingWrites::Write given_up = writes.begin(); }
  EXPECT_NE(thrown_by([&] { m.unshard(layer); }).find("failed before the end"), std::string::npos);
  EXPECT_EQ(rank.gathered.held_bytes(), 0);
  EXPECT_NE(thrown_by([&] { m.wait_for_writes(); }).find("failed before the end"), std::string::npos);
  writes.forget_failures();
  m.wait_for_writes();
  m.unshard(layer);
  m.reshard(layer);
}

// The host, where some of the calls that unsharding makes fail. The event that a failed wait waits for never
// comes.
class FaultyDevice final : public Device {
 public:
  enum Fault { kGather, kWait, kTensor };
  struct Plan {
    Fault fault = kGather;
    int after = 0, times = 0;  // calls that go well before, and that fail then
    bool fails(Fault called) { return called == fault && times > 0 && after-- <= 0 && times-- > 0; }
  };
  Plan plan;

  const char* name() const override {
    if (plan_->fails(kTensor)) throw Error(Code::kRanksFailed, "no tensor");
    return host_.name();
  }
  Memory& weights() override { return host_.weights(); }
  Memory& staging() override { return host_.staging(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Lane> lane() override { return host_.lane(); }
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override {
    return std::make_unique<Ranks>(plan, host_.ranks(comm));
  }

 private:
  class Ranks final : public DeviceRanks {
   public:
    Ranks(Plan& plan, std::unique_ptr<DeviceRanks> host) : plan_(plan), host_(std::move(host)) {}
    int rank() const override { return host_->rank(); }
    int size() const override { return host_->size(); }
    void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) override {
      if (plan_.fails(kGather)) throw Error(Code::kRanksFailed, "no gather");
      lost_.erase(&lane);
      if (plan_.fails(kWait))
        lost_.insert(&lane);
      else
        host_->all_gather(lane, mine, all);
    }
    void exchange(Lane& lane, std::span<const Part> sends, std::span<const Part> receives) override {
      host_->exchange(lane, sends, receives);
    }
    void wait(Lane& lane) override {
      if (lost_.contains(&lane)) throw Error(Code::kRanksFailed, "no wait");
      host_->wait(lane);
    }

   private:
    Plan& plan_;
    std::unique_ptr<DeviceRanks> host_;
    std::set<Lane*> lost_;  // whose work does not come
  };

  HostDevice host_;
  Plan* plan_ = &plan;
};

TEST(LiveModel, IsAsBeforeWhenUnshardingFails) {
  int failed = 0;
  for (Strategy strategy : {Strategy::kOptim, Strategy::kOptimGradsParams})
    for (FaultyDevice::Plan plan : {FaultyDevice::Plan{FaultyDevice::kGather, 0, 1},
                                    {FaultyDevice::kGather, 1, 1},
                                    {FaultyDevice::kWait, 0, 1},
                                    {FaultyDevice::kWait, 0, 2},
                                    {FaultyDevice::kTensor, 0, 1},
                                    {FaultyDevice::kTensor, 3, 1}}) {
      FaultyDevice device;
      HostMemory gathered;
      LiveModel m(map_of("qwen3_moe"), setup_of("qwen3_moe", strategy), world(), device, gathered);
      i32 layer = m.modules().find("decoder.layers.1");
      m.fully_shard(layer);
      m.fully_shard(0);
      fill(m);
      ASSERT_EQ(m.groups_of(layer).size(), 2u);  // one of the experts
      std::string what = cat(strategy_name(strategy), ", fault ", int{plan.fault}, " after ", plan.after,
                             " for ", plan.times);
      auto each = [&](auto look) {
        for (const std::unique_ptr<LiveGroup>& group : m.groups_of(layer))
          for (i64 p : group->bucket().members) look(static_cast<i32>(p));
      };
      auto is_sharded = [&] {
        EXPECT_EQ(thrown_by([&] { m.refuse_unsharded(0, "looked at"); }), "nothing") << what;
        EXPECT_EQ(gathered.held_bytes(), 0) << what;
        each([&](i32 p) { EXPECT_TRUE(m.tensor(p).facts().meta) << what; });
      };
      device.plan = plan;
      std::string said = thrown_by([&] { m.unshard(layer); });
      // Alone a rank has nothing to gather where all weights are sharded.
      bool gathers = strategy == Strategy::kOptim || world().size() > 1;
      if (!gathers && plan.fault != FaultyDevice::kTensor) continue;
      EXPECT_NE(said.find("MC4001 no "), said.npos) << what << ": " << said;
      failed++;
      device.plan = {};
      is_sharded();
      m.unshard(layer);
      each([&](i32 p) { EXPECT_EQ(first_wrong(m, p), -1) << what; });
      m.reshard(layer);
      is_sharded();
    }
  EXPECT_GE(failed, 8);
}

TEST(HostMemory, SaysWhatWasNeededWhenThereIsNone) {
  HostMemory memory;
  std::string refused = thrown_by([&] { memory.allocate(i64{1} << 60); });
  EXPECT_NE(refused.find("expected 1152921504606846976 bytes"), std::string::npos) << refused;
  EXPECT_NE(refused.find("bytes free"), std::string::npos) << refused;
}

}  // namespace
}  // namespace mckpt::impl
