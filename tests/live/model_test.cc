// The live model: wrapping, memory, gathering and releasing, with any number of ranks.
#include "live/live_model.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "live/pooled_memory.h"
#include "tests/live/live_rank.h"
#include "tests/support/throws.h"

namespace mckpt {
namespace {

const ModelMap& map_of(const std::string& model) {
  static std::map<std::string, ModelMap> maps;
  auto at = maps.find(model);
  return at != maps.end() ? at->second : maps.emplace(model, golden_map(model)).first->second;
}

LiveSetup setup_of(const std::string& model, Strategy strategy = Strategy::kOptimGradsParams,
                   Grid grid = {}) {
  return bf16_setup(map_of(model), over_world(grid), strategy);
}

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

// A group without its number: members, their places, and the sizes of the bucket.
std::string text_of(const Bucket& bucket, const FlatBuffer& buffer) {
  std::string text = cat(bucket.expert, " ", buffer.bucket_items, "/", buffer.shard_items, ":");
  for (std::size_t m = 0; m < bucket.members.size(); m++)
    text += cat(" ", bucket.members[m], "@", buffer.parameters[m].offset);
  return text;
}

TEST(LiveModel, WrapsIntoTheGroupsThatACheckpointHas) {
  std::size_t groups = 0;
  for (const std::string& name : golden_models())
    for (Strategy strategy : kStrategies)
      for (UnitScope scope : {UnitScope::kFullShardOnly, UnitScope::kAllSharded}) {
        LiveSetup setup = setup_of(name, strategy);
        setup.fsdp.unit_scope = scope;
        setup.fsdp.saved = false;
        setup.fsdp.bucket_items = 20'000;  // so that what is outside units is cut
        LiveRank rank(map_of(name), setup);
        auto wrap = [&] { rank.model.wrap(); };
        auto lay_out = [&] {
          FsdpLayout(rank.model.parameters(), rank.model.map().model(), setup.grid, setup.fsdp);
        };
        if (std::string refused = thrown_by(lay_out); refused != "nothing") {
          EXPECT_EQ(thrown_by(wrap).substr(0, 6), refused.substr(0, 6)) << name;
          continue;
        }
        wrap();
        FsdpLayout layout(rank.model.parameters(), rank.model.map().model(), setup.grid, setup.fsdp);
        std::set<std::string> want, got;
        for (const FsdpGroup& group : layout.groups()) want.insert(text_of(group.bucket, group.buffer));
        for (LiveGroup* group : rank.model.groups()) got.insert(text_of(group->bucket(), group->buffer()));
        EXPECT_EQ(got, want) << name << " " << strategy_name(strategy);
        groups += got.size();
      }
  EXPECT_GT(groups, 1000u);
}

TEST(LiveModel, WrapsLayersAsUnits) {
  LiveRank rank(map_of("nemotron_h_moe"), setup_of("nemotron_h_moe"));
  rank.model.wrap();
  std::vector<std::string> names;
  for (i32 m : rank.model.sharded_modules()) names.push_back(rank.model.modules()[m].name);
  ASSERT_EQ(names.size(), rank.model.map().model().text.layers.size() + 1);
  EXPECT_EQ(names[0], "");
  EXPECT_EQ(names[1], "decoder.layers.0");
}

TEST(LiveModel, ShardedChildrenKeepTheirParameters) {
  LiveRank rank(map_of("qwen3_dense"), setup_of("qwen3_dense"));
  LiveModel& m = rank.model;
  i32 mlp = m.modules().find("decoder.layers.1.mlp"), layer = m.modules().find("decoder.layers.1");
  m.fully_shard(mlp);
  m.fully_shard(layer);
  EXPECT_EQ(m.groups_of(mlp).at(0)->bucket().members.size(), 3u);
  EXPECT_EQ(m.groups_of(layer).at(0)->bucket().members.size(), 5u);  // norm, qkv, q and k norm, proj
  i32 fc2 = parameter_named(m, "decoder.layers.1.mlp.linear_fc2.weight");
  EXPECT_EQ(m.seat(fc2).module, mlp);
  m.fully_shard(0);
  EXPECT_EQ(m.seat(fc2).module, mlp);
  // The other way round there is nothing left for the child.
  std::string refused = thrown_by([&] { m.fully_shard(m.modules().find("decoder.layers.0.mlp")); });
  EXPECT_NE(refused.find("sharded before those around it"), std::string::npos) << refused;
}

TEST(LiveModel, IsNotShardedAnewWhileAChildIsUnsharded) {
  LiveRank rank(map_of("qwen3_dense"), setup_of("qwen3_dense"));
  LiveModel& m = rank.model;
  m.wrap();
  fill(m);
  i32 layer = m.modules().find("decoder.layers.0");
  m.unshard(layer);
  for (i32 module : {0, layer}) {
    std::string refused = thrown_by([&] { m.fully_shard(module); });
    EXPECT_NE(refused.find("while it, or one inside it, is unsharded"), std::string::npos) << refused;
  }
  EXPECT_NE(thrown_by([&] { m.drop(); }), "nothing");
  EXPECT_NE(thrown_by([&] { m.refresh(); }), "nothing");
  m.reshard(layer);
  m.fully_shard(layer);
  EXPECT_FALSE(m.loaded());
  fill(m);
  m.unshard(layer);
  EXPECT_EQ(first_wrong(m, parameter_named(m, "decoder.layers.0.mlp.linear_fc1.weight")), -1);
  m.reshard(layer);
}

TEST(LiveModel, TiedWeightsBelongToTheFirstName) {
  ASSERT_TRUE(map_of("tiny_llama1").model().tied);
  LiveRank rank(map_of("tiny_llama1"), setup_of("tiny_llama1"));
  LiveModel& m = rank.model;
  i32 embedding = parameter_named(m, "embedding.word_embeddings.weight");
  i32 output = m.modules().find("output_layer");
  EXPECT_EQ(m.modules()[output].parameters, std::vector<i32>{embedding});
  m.fully_shard(output);  // which has nothing of its own
  EXPECT_TRUE(m.groups_of(output).empty());
  m.wrap();
  EXPECT_EQ(m.seat(embedding).module, 0);
  fill(m);
  m.unshard(output);
  EXPECT_EQ(first_wrong(m, embedding), -1);
  // What two modules share stays until both let it go.
  i32 words = m.modules().find("embedding.word_embeddings");
  m.unshard(words);
  m.reshard(output);
  EXPECT_EQ(first_wrong(m, embedding), -1);
  m.reshard(words);
  EXPECT_TRUE(m.tensor(embedding).facts().meta);
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

TEST(LiveModel, TakesNoMoreThanOneModuleAboveItsShards) {
  for (Strategy strategy : kStrategies) {
    LiveRank rank(map_of("qwen3_moe"), setup_of("qwen3_moe", strategy));
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

TEST(LiveModel, RepeatedPassesComeFromOneSlab) {
  HostMemory storage, host;
  PooledMemory gathered(host);
  LiveModel m(map_of("qwen3_moe"), setup_of("qwen3_moe"), world(), storage, gathered);
  m.wrap();
  fill(m);
  const PoolFacts& facts = gathered.pool().facts();
  for (int pass = 0; pass < 3; pass++) {
    gathered.pool().begin_pass();
    m.unshard(0);  // the embedding stays while the layers come and go
    for (i32 module : m.sharded_modules()) {
      m.unshard(module);
      for (const auto& group : m.groups_of(module))
        for (i64 p : group->bucket().members) ASSERT_EQ(first_wrong(m, static_cast<i32>(p)), -1) << pass;
      if (module != 0) m.reshard(module);
    }
    m.reshard(0);
    gathered.pool().end_pass();
  }
  EXPECT_EQ(facts.traced_passes, world().size() > 1 ? 1 : 3);  // alone there is nothing to gather
  EXPECT_EQ(facts.live_bytes, 0);
  EXPECT_EQ(facts.slab_bytes, facts.planned_live_bytes);
  EXPECT_EQ(host.held_bytes(), facts.slab_bytes);
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

TEST(LiveModel, AFusedPathFindsItsConvolutionGathered) {
  LiveRank rank(map_of("qwen3_next"), setup_of("qwen3_next"));
  LiveModel& m = rank.model;
  i32 attention = m.modules().find("decoder.layers.0.self_attention");
  i32 conv = m.modules().find("decoder.layers.0.self_attention.conv1d");
  i32 projection = m.modules().find("decoder.layers.0.self_attention.out_proj");
  m.fully_shard(conv);
  m.fully_shard(projection);
  m.wrap();
  fill(m);
  m.unshard(attention);
  EXPECT_EQ(first_wrong(m, parameter_named(m, "decoder.layers.0.self_attention.conv1d.weight")), -1);
  EXPECT_TRUE(m.tensor(parameter_named(m, "decoder.layers.0.self_attention.out_proj.weight")).facts().meta);
  m.reshard(attention);
  EXPECT_TRUE(m.tensor(parameter_named(m, "decoder.layers.0.self_attention.conv1d.weight")).facts().meta);
}

TEST(LiveModel, ContextParallelSlicesAreThoseOfTheLiveValues) {
  Grid grid{.cp = 2};
  if (!fits_world(grid)) return;
  LiveRank rank(map_of("nemotron_h"), setup_of("nemotron_h", Strategy::kOptimGradsParams, grid));
  LiveModel& m = rank.model;
  m.wrap();
  i32 conv = parameter_named(m, "decoder.layers.0.mixer.conv1d_weight");
  i32 heads = parameter_named(m, "decoder.layers.0.mixer.A_log");
  const MambaConfig& c = m.map().model().mamba;
  MambaSlice slice = mamba_cp_slice({c.inner(), c.heads, c.groups, c.state}, {2, m.cell().cp});
  i32 layer = m.modules().find("decoder.layers.0");
  EXPECT_NE(thrown_by([&] { m.cp_slice(conv); }), "nothing");
  for (u16 salt : {u16{1}, u16{2}}) {
    fill(m, salt);
    m.unshard(layer);
    Tensor slice_of_conv = m.cp_slice(conv);
    Tensor::Facts rows = slice_of_conv.facts();
    EXPECT_EQ(rows.shape[0], slice.conv_channels);
    i64 at = 0, row_items = rows.shape.row_items();
    for (const RowRange& r : slice.conv)
      for (i64 i = r.begin * row_items; i < r.end * row_items; i++, at++) {
        u16 bits;
        std::memcpy(&bits, rows.bytes.data() + 2 * at, 2);
        ASSERT_EQ(bits, bits_of(conv, i, salt));
      }
    EXPECT_EQ(at, rows.shape.items());
    EXPECT_EQ(m.cp_slice(heads).facts().shape, Shape{slice.heads.end - slice.heads.begin});
    m.reshard(layer);
  }
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
  group.refresh();
  m.unshard(layer);
  EXPECT_EQ(first_wrong(m, parameter_named(m, "decoder.layers.1.mlp.linear_fc2.weight"), 9), -1);
  m.reshard(layer);
}

TEST(LiveModel, HalfWrittenWeightsAreNotGathered) {
  LiveRank rank(map_of("qwen3_dense"), setup_of("qwen3_dense"));
  LiveModel& m = rank.model;
  m.wrap();
  fill(m);
  i32 layer = m.modules().find("decoder.layers.0");
  PendingWrites& writes = m.groups_of(layer).at(0)->writes();
  { PendingWrites::Write given_up = writes.begin(); }
  EXPECT_NE(thrown_by([&] { m.unshard(layer); }).find("not filled to the end"), std::string::npos);
  EXPECT_EQ(rank.gathered.held_bytes(), 0);
  EXPECT_NE(thrown_by([&] { m.wait_for_writes(); }).find("not filled to the end"), std::string::npos);
  writes.forget_failures();
  m.wait_for_writes();
  m.unshard(layer);
  m.reshard(layer);
}

TEST(LiveModel, FrozenParametersHaveNoMainWeights) {
  LiveSetup setup = setup_of("qwen3_dense");
  setup.adjust = [](std::vector<ModelParameter>& parameters) {
    for (ModelParameter& p : parameters) p.trainable = p.name.find("norm") == p.name.npos;
  };
  LiveRank rank(map_of("qwen3_dense"), setup);
  rank.model.wrap();
  for (LiveGroup* group : rank.model.groups()) {
    const ModelParameter& first =
        rank.model.parameters()[static_cast<std::size_t>(group->bucket().members[0])];
    EXPECT_EQ(group->stored_type(), first.trainable ? DType::kF32 : DType::kBF16) << first.name;
  }
}

TEST(LiveModel, MarksStayWithTheParameter) {
  LiveRank rank(map_of("qwen3_moe"), setup_of("qwen3_moe"));
  LiveModel& m = rank.model;
  m.wrap();
  std::vector<ParameterMarks> before;
  for (std::size_t p = 0; p < m.parameters().size(); p++) before.push_back(m.marks(static_cast<i32>(p)));
  fill(m);
  for (i32 module : m.sharded_modules()) {
    m.unshard(module);
    for (std::size_t p = 0; p < before.size(); p++) ASSERT_EQ(m.marks(static_cast<i32>(p)), before[p]);
    m.reshard(module);
  }
}

TEST(LiveModel, NeedsAsManyRanksAsItsGrid) {
  LiveSetup setup = setup_of("qwen3_dense");
  setup.grid.dp++;
  std::string refused = thrown_by([&] { LiveRank rank(map_of("qwen3_dense"), setup); });
  EXPECT_NE(refused.find("not as many ranks as the grid"), std::string::npos) << refused;
}

TEST(HostMemory, SaysWhatWasNeededWhenThereIsNone) {
  HostMemory memory;
  std::string refused = thrown_by([&] { memory.allocate(i64{1} << 60); });
  EXPECT_NE(refused.find("expected 1152921504606846976 bytes"), std::string::npos) << refused;
  EXPECT_NE(refused.find("bytes free"), std::string::npos) << refused;
}

}  // namespace
}  // namespace mckpt
