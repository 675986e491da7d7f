// The live model as modules and groups: wrapping, what belongs together, what stays with a parameter; with
// any number of ranks.
#include "live/model/model.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/text.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/param_groups.h"
#include "core/hybrid/cp_slice.h"
#include "live/model/group.h"
#include "mappings/fsdp/groups.h"
#include "mappings/fsdp/layout.h"
#include "mappings/map_file/rows.h"
#include "mappings/model/parameter.h"
#include "tests/support/throws.h"
#include "tests/unit/live/live_rank.h"

namespace mckpt::impl {
namespace {

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
  EXPECT_NE(refused.find("sharded before the modules that contain it"), std::string::npos) << refused;
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
  // A parameter that two modules share stays until both let it go.
  i32 words = m.modules().find("embedding.word_embeddings");
  m.unshard(words);
  m.reshard(output);
  EXPECT_EQ(first_wrong(m, embedding), -1);
  m.reshard(words);
  EXPECT_TRUE(m.tensor(embedding).facts().meta);
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

// A norm by its name, and split over the ranks because the row that adds it says so.
TEST(LiveModel, AParametersOwnAnnotationDecidesBeforeItsName) {
  Grid grid{.tp = 2};
  if (!fits_world(grid)) return;
  const std::string mlp = "decoder.layers.{L}.mlp.";
  HfConfig config = golden_config("qwen3_dense");
  for (std::optional<int> annotation : {std::optional<int>(), std::optional<int>(0)}) {
    OwnFamily own(*config.family, {.rows = {{.megatron = mlp + "gate_norm.weight",
                                             .sources = {{"model.layers.{L}.mlp.gate_norm.weight", "ffn"}},
                                             .partition_dim = annotation,
                                             .after = mlp + "linear_fc2.weight"}},
                                   .unread = {}});
    ModelMap map = ModelMap::promised(config.model, own.family());
    LiveRank rank(map, bf16_setup(map, over_world(grid), Strategy::kOptimGradsParams));
    LiveModel& m = rank.model;
    i32 norm = parameter_named(m, "decoder.layers.1.mlp.gate_norm.weight");
    bool split = annotation.has_value();
    const ParameterMarks& marks = m.marks(norm);
    EXPECT_EQ(marks.tensor_model_parallel, split);
    EXPECT_EQ(marks.partition_dim, split ? 0 : -1);
    EXPECT_EQ(marks.sequence_parallel, !split);
    m.wrap();
    fill(m);
    i32 layer = m.modules().find("decoder.layers.1");
    m.unshard(layer);
    EXPECT_EQ(m.tensor(norm).facts().shape, Shape{marks.logical[0] / (split ? 2 : 1)});
    EXPECT_EQ(first_wrong(m, norm), -1);
    m.reshard(layer);
  }
}

TEST(LiveModel, NeedsAsManyRanksAsItsGrid) {
  LiveSetup setup = setup_of("qwen3_dense");
  setup.grid.dp++;
  std::string refused = thrown_by([&] { LiveRank rank(map_of("qwen3_dense"), setup); });
  EXPECT_NE(refused.find("the number of ranks of the job is not that of the grid"), std::string::npos)
      << refused;
}

}  // namespace
}  // namespace mckpt::impl
