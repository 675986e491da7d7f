// Stacks as units of a live model: what is packed together, that the layers of a stack share its weights,
// that a stack is right while the next one is gathered; and parameters that modules elsewhere read.
#include <gtest/gtest.h>

#include <set>

#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "live/device/kept_memory.h"
#include "live/model/group.h"
#include "mappings/fsdp/layout.h"
#include "mappings/map_file/rows.h"
#include "mappings/model/parameter.h"
#include "tests/support/throws.h"
#include "tests/unit/live/late_lane.h"
#include "tests/unit/live/live_rank.h"

namespace mckpt::impl {
namespace {

// nemotron_h is M-M*-.
const LayerPattern& grouped() {
  static const LayerPattern pattern = parse_pattern("[M-]M[*-]", Dialect::kGrouped);
  return pattern;
}

LiveSetup stack_setup(const LayerPattern* groups) {
  LiveSetup setup = setup_of("nemotron_h");
  setup.run.groups = groups;
  setup.fsdp.transformer_units = setup.fsdp.mamba_units = false;
  setup.fsdp.hybrid_stack_units = true;
  return setup;
}

std::vector<std::string> unit_names(const LiveModel& m) {
  std::vector<std::string> names;
  for (i32 module : m.sharded_modules()) names.push_back(m.modules()[module].name);
  return names;
}

TEST(LiveStackUnits, AreGroupsOrTheWholeStack) {
  using Names = std::vector<std::string>;
  LiveRank flat(map_of("nemotron_h"), stack_setup(nullptr)),
      in_groups(map_of("nemotron_h"), stack_setup(&grouped()));
  flat.model.wrap(), in_groups.model.wrap();
  EXPECT_EQ(unit_names(flat.model), (Names{"", "decoder"}));
  EXPECT_EQ(unit_names(in_groups.model), (Names{"", "decoder.layers.0", "decoder.layers.2"}));
  LiveSetup mixed = stack_setup(&grouped());
  mixed.fsdp.mamba_units = true;
  LiveRank with_mamba(map_of("nemotron_h"), mixed);
  with_mamba.model.wrap();
  EXPECT_EQ(unit_names(with_mamba.model),
            (Names{"", "decoder.layers.0", "decoder.layers.1", "decoder.layers.2"}));
  LiveSetup other = setup_of("qwen3_dense");
  other.fsdp.hybrid_stack_units = true;
  LiveRank none(map_of("qwen3_dense"), other);
  EXPECT_NE(thrown_by([&] { none.model.wrap(); }).find("no HybridStack"), std::string::npos);
}

TEST(LiveStackUnits, ArePackedAsInACheckpoint) {
  for (const LayerPattern* groups : {static_cast<const LayerPattern*>(nullptr), &grouped()})
    for (bool mamba : {false, true}) {
      LiveSetup setup = stack_setup(groups);
      setup.fsdp.mamba_units = mamba;
      setup.fsdp.bucket_items = 20'000;
      LiveRank rank(map_of("nemotron_h"), setup);
      rank.model.wrap();
      FsdpLayout layout(rank.model.parameters(), rank.model.map().model(), setup.grid, setup.fsdp);
      std::set<std::pair<std::vector<i64>, i64>> want, got;
      for (const FsdpGroup& g : layout.groups()) want.emplace(g.bucket.members, g.buffer.bucket_items);
      for (LiveGroup* g : rank.model.groups()) got.emplace(g->bucket().members, g->buffer().bucket_items);
      EXPECT_EQ(got, want);
    }
}

std::vector<i32> parameters_in(const LiveModel& m, const std::string& module) {
  return m.modules().parameters_below(m.modules().find(module));
}

void expect_right(const LiveModel& m, const std::string& module) {
  for (i32 p : parameters_in(m, module)) EXPECT_EQ(first_wrong(m, p), -1) << m.parameters()[p].name;
}

TEST(LiveStackUnits, StayUntilTheStackAndItsLayersAreResharded) {
  LiveRank rank(map_of("nemotron_h"), stack_setup(&grouped()));
  LiveModel& m = rank.model;
  m.wrap();
  fill(m);
  i32 stack = m.modules().find("decoder.layers.0"), mamba = m.modules().find("decoder.layers.0.layers.0"),
      mlp = m.modules().find("decoder.layers.0.layers.1");
  EXPECT_EQ(m.modules().layers_inside(stack), (std::vector<i32>{mamba, mlp}));
  EXPECT_EQ(m.sharded_with(mlp), stack);
  m.unshard(mamba);  // the whole group is gathered
  expect_right(m, "decoder.layers.0");
  m.unshard(mlp);
  m.reshard(mamba);
  expect_right(m, "decoder.layers.0");
  m.unshard(stack);
  m.reshard(mlp);
  expect_right(m, "decoder.layers.0");
  m.reshard(stack);
  for (i32 p : parameters_in(m, "decoder.layers.0")) EXPECT_TRUE(m.tensor(p).facts().meta);
}

// Gathers that are carried out when somebody waits. Until then the buffer has bytes that are nobody's.
class LateRanks final : public DeviceRanks {
 public:
  explicit LateRanks(std::unique_ptr<DeviceRanks> host) : host_(std::move(host)) {}
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void all_gather(Lane& lane, std::span<const u8> mine, std::span<u8> all) override {
    std::ranges::fill(all, u8{0xEE});
    dynamic_cast<LateLane&>(lane).later([=, this] { host_->all_gather(*here_, mine, all); });
  }
  void exchange(Lane& lane, std::span<const Part> sends, std::span<const Part> receives) override {
    host_->exchange(lane, sends, receives);
  }
  void wait(Lane& lane) override { lane.wait(); }

 private:
  std::unique_ptr<DeviceRanks> host_;
  HostDevice device_;
  std::unique_ptr<Lane> here_ = device_.lane();
};

class LateGathers final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  Memory& weights() override { return host_.weights(); }
  Memory& staging() override { return host_.staging(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Lane> lane() override { return std::make_unique<LateLane>(host_.lane(), counts_); }
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override {
    return std::make_unique<LateRanks>(host_.ranks(comm));
  }

 private:
  HostDevice host_;
  LaneCounts counts_;
};

TEST(LiveStackUnits, AreRightWhileTheNextOneIsGathered) {
  LateGathers device;
  KeptMemory gathered(device.weights());
  LiveModel m(map_of("nemotron_h"), stack_setup(&grouped()), world(), device, gathered);
  m.wrap();
  fill(m);
  const std::vector<i32>& modules = m.sharded_modules();
  for (int pass = 0; pass < 3; pass++)
    for (std::size_t i = 0; i < modules.size(); i++) {
      m.unshard(modules[i]);
      if (i + 1 < modules.size()) m.prefetch(modules[i + 1]);
      std::vector<i32> layers = m.modules().layers_inside(modules[i]);
      if (modules[i] == 0) layers.clear();
      for (i32 layer : layers) {  // they compute one after the other
        m.unshard(layer);
        for (i32 p : m.modules().parameters_below(layer)) EXPECT_EQ(first_wrong(m, p), -1);
        m.reshard(layer);
      }
      for (const auto& group : m.groups_of(modules[i]))
        for (i64 p : group->bucket().members) EXPECT_EQ(first_wrong(m, static_cast<i32>(p)), -1) << pass;
      m.reshard(modules[i]);
    }
}

// A scale beside the final norm, which the mixers of all Mamba layers read, and a norm in each of them that
// the mixer of the layer reads without calling it.
MapFile rows_of_mine(const std::string& reader) {
  MapRow scale{.megatron = "decoder.shared_scale.weight",
               .rule = "replicate",
               .sources = {{"backbone.shared_scale.weight", "hidden"}},
               .after = "decoder.final_norm.weight"};
  MapRow inner{.megatron = "decoder.layers.{L}.mixer.inner.gate.weight",
               .rule = "column",
               .sources = {{"backbone.layers.{L}.mixer.inner.weight", "mamba_inner"}},
               .after = "decoder.layers.{L}.mixer.norm.weight"};
  scale.gathered_with = reader;
  inner.gathered_with = "decoder.layers.{L}.mixer";
  return {.rows = {scale, inner}, .unread = {}};
}

TEST(LiveDirectReads, AreGatheredWithTheModuleThatReads) {
  HfConfig config = golden_config("nemotron_h");
  OwnFamily own(*config.family, rows_of_mine("decoder.layers.{L}.mixer"));
  ModelMap map = ModelMap::promised(config.model, own.family());
  for (const LayerPattern* groups : {static_cast<const LayerPattern*>(nullptr), &grouped()}) {
    LiveSetup setup = bf16_setup(map, over_world({}), Strategy::kOptimGradsParams);
    setup.run.groups = groups;
    LiveRank rank(map, setup);
    LiveModel& m = rank.model;
    std::string mamba = groups ? "decoder.layers.0.layers.0" : "decoder.layers.0";
    i32 inner = m.modules().find(mamba + ".mixer.inner"), mixer = m.modules().find(mamba + ".mixer");
    m.fully_shard(inner);  // so that only what is declared gathers it with the mixer
    m.wrap();
    fill(m);
    i32 scale = parameter_named(m, "decoder.shared_scale.weight"),
        gate = parameter_named(m, mamba + ".mixer.inner.gate.weight");
    i32 layer = m.modules().find(mamba),
        mlp = m.modules().find(groups ? "decoder.layers.0.layers.1" : "decoder.layers.1");
    EXPECT_EQ(m.extra_parameters(layer), std::vector<i32>{scale});
    EXPECT_TRUE(m.extra_parameters(mlp).empty());
    EXPECT_TRUE(m.extra_parameters(0).empty());  // the layers read for themselves
    for (i32 module : {layer, mixer}) {
      m.unshard(module);
      EXPECT_EQ(first_wrong(m, scale), -1);
      EXPECT_EQ(module == mixer ? first_wrong(m, gate) : -1, -1);
      m.reshard(module);
      EXPECT_TRUE(m.tensor(scale).facts().meta);
    }
    m.unshard(mlp);
    EXPECT_TRUE(m.tensor(scale).facts().meta);
    m.reshard(mlp);
    m.unshard(layer), m.unshard(0);  // both have the group of the model
    m.reshard(0);
    EXPECT_EQ(first_wrong(m, scale), -1);
    m.reshard(layer);
  }
}

TEST(LiveDirectReads, OfModulesThatAreNotThereAreRefused) {
  HfConfig config = golden_config("nemotron_h");
  struct Case {
    const char *reader, *told;
  };
  for (const Case& c : {Case{"decoder.layers.{L}.mixers", "a module that the model does not have"},
                        {"decoder.layers.{M}.mixer", "{M} of gathered_with has no number"},
                        {"layer", "the row is in none"},
                        {"decoder.layers.{X}", "a placeholder that is not known"}}) {
    std::string refused = thrown_by([&] {
      OwnFamily own(*config.family, rows_of_mine(c.reader));
      ModelMap map = ModelMap::promised(config.model, own.family());
      LiveRank rank(map, bf16_setup(map, over_world({}), Strategy::kOptimGradsParams));
    });
    EXPECT_TRUE(refused.starts_with("MC2009")) << refused;
    EXPECT_NE(refused.find(c.told), refused.npos) << refused;
  }
}

}  // namespace
}  // namespace mckpt::impl
