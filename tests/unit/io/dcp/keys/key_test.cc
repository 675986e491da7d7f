#include "io/dcp/keys/key.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/dcp/keys/dialect.h"

namespace mckpt::impl {
namespace key_test {

TEST(KeySection, PartsAKeyAroundTheParameter) {
  struct Row {
    DcpDialect dialect;
    const char *front, *name, *tail;
    bool optimizer;
  };
  constexpr DcpDialect kFsdp = DcpDialect::kFsdpDtensor, kDist = DcpDialect::kTorchDist;
  static constexpr Row kRows[] = {
      {kFsdp, "model.module.", "a.b", "", false},
      {kFsdp, "model2.module.module.", "a.b", "", false},
      {kFsdp, "optimizer.state.module.module.module.", "a.b", ".exp_avg_sq", true},
      {kFsdp, "optimizer.param_to_group_meta.module.", "a.b", ".lr", true},
      {kFsdp, "args", "", "", false},
      {kFsdp, "rng_state.(0, 0).0.np_rng_state", "", "", false},
      {kFsdp, "optimizer.other", "", "", true},
      {kDist, "", "a.b", "", false},
      {kDist, "", "a.b._extra_state", "/shard_0_1", false},
      {kDist, "optimizer.state.exp_avg.", "a.b", "", true},
      {kDist, "optimizer.state.any.", "a.b", "/shard_0_1", true},
      {kDist, "chained_12.optimizer.state.fp32_param.", "a.b", "", true},
      {kDist, "", "chained_x.optimizer.state.fp32_param.a", "", false},
      {kDist, "optimizer.distributed.dp_group_idx_0.param", "", "", true},
      {kDist, "optimizer.state.step", "", "/shard_0_1", true},
  };
  for (const Row& row : kRows) {
    std::string key = cat(row.front, row.name, row.tail);
    KeySection s = key_section(row.dialect, key);
    EXPECT_EQ(s.front, row.front) << key;
    EXPECT_EQ(s.name, row.name) << key;
    EXPECT_EQ(s.tail, row.tail) << key;
    EXPECT_EQ(s.optimizer, row.optimizer) << key;
  }
}

TEST(KeySection, ReadsThePlaceOfAnObjectsPart) {
  for (const char* tail : {"/shard_0_1", "/shard_3_4", "/shard_0.1_2.4", "/shard_0.0.7_1.1.8"}) {
    std::optional<ObjectShard> shard = object_shard(tail);
    ASSERT_TRUE(shard) << tail;
    EXPECT_EQ(to_string(*shard), tail);
  }
  for (const char* tail :
       {"", "/", "/shard_", "/shard_0", "/shard_0_", "/shard_0_1_", "/shard_0.1_2", "/shard_-1_2",
        "/shard_a_1", "/shard_0._1.", "/shard_99999999999999999999_1", "shard_0_1"})
    EXPECT_FALSE(object_shard(tail)) << tail;
}

TEST(KeySection, KnowsWhereDictionariesNest) {
  struct Row {
    const char* key;
    std::vector<std::string> path;
  };
  const Row rows[] = {
      {"model.module.a.b", {"model", "module.a.b"}},
      {"model1.module.a", {"model1", "module.a"}},
      {"optimizer.state.module.a.b.exp_avg", {"optimizer", "state", "module.a.b", "exp_avg"}},
      {"optimizer.param_to_group_meta.module.a.lr", {"optimizer", "param_to_group_meta", "module.a", "lr"}},
      {"opt_param_scheduler.max_lr", {"opt_param_scheduler", "max_lr"}},
      {"rng_state.(0, 0).0.np_rng_state", {"rng_state", "(0, 0)", "0", "np_rng_state"}},
      {"iteration", {"iteration"}},
      {"some.other", {"some.other"}},
  };
  for (const Row& row : rows) {
    std::vector<std::string> path;
    std::string_view rest = row.key;
    std::size_t from = 0;
    for (i32 dot : nesting_dots(rest)) {
      path.emplace_back(rest.substr(from, static_cast<std::size_t>(dot) - from));
      from = static_cast<std::size_t>(dot) + 1;
    }
    path.emplace_back(rest.substr(from));
    EXPECT_EQ(path, row.path) << row.key;
  }
}

std::string dump(const DcpKey& k) {
  constexpr const char* kSections[] = {"other", "model", "state", "meta"};
  return cat(kSections[static_cast<int>(k.section)], " ", k.parameter, " ", k.field);
}

TEST(DcpKey, TakesKeysApart) {
  using enum DcpDialect;
  const struct {
    DcpDialect dialect;
    const char *key, *want;
  } cases[] = {
      {kFsdpDtensor, "model.module.decoder.x", "model decoder.x "},
      {kFsdpDtensor, "model1.module.module.decoder.x", "model decoder.x "},
      {kFsdpDtensor, "optimizer.state.module.module.module.decoder.x.exp_avg_sq",
       "state decoder.x exp_avg_sq"},
      {kFsdpDtensor, "optimizer.state.module.module.decoder.x.exp_avg", "state decoder.x exp_avg"},
      {kFsdpDtensor, "optimizer.param_to_group_meta.module.module.module.decoder.x.lr", "meta decoder.x lr"},
      {kFsdpDtensor, "rng_state.(0, 0).0.torch_rng_state", "other  "},
      {kMegatronFsdp, "optimizer.state.12.exp_avg", "state 12 exp_avg"},
      {kStateDict, "model.module.x", "model module.x "},
      {kStateDict, "optimizer.state.layers.0.weight.step", "state layers.0.weight step"},
      {kStateDict, "optimizer.param_groups.0.lr", "other  "},
      {kTorchDist, "decoder.x", "model decoder.x "},
      {kTorchDist, "optimizer.state.exp_avg.decoder.x", "state decoder.x exp_avg"},
      {kTorchDist, "optimizer.state.fp32_param.decoder.x", "state decoder.x fp32_param"},
      {kTorchDist, "optimizer.distributed.dp_group_idx_0.param_state", "other  "},
      {kTorchDist, "decoder.x._extra_state/shard_0_2", "other  "},
      {kPlain, "model.module.x", "other  "},
  };
  for (const auto& c : cases) EXPECT_EQ(dump(split_key(c.dialect, c.key)), c.want) << c.key;
}

TEST(DcpKey, KnowsHalvesOfGatedTensors) {
  const struct {
    const char *name, *stem;
    char half;
  } cases[] = {
      {"l.mlp.linear_fc1.weight_w", "l.mlp.linear_fc1.weight", 'w'},
      {"l.mlp.linear_fc1.bias_v", "l.mlp.linear_fc1.bias", 'v'},
      {"l.mlp.experts.linear_fc1.weight12_v", "l.mlp.experts.linear_fc1.weight12", 'v'},
      {"l.mlp.linear_fc1.weight", "l.mlp.linear_fc1.weight", 0},
      {"l.mlp.linear_fc2.weight_w", "l.mlp.linear_fc2.weight_w", 0},
      {"l.attn_w", "l.attn_w", 0},
      {"_w", "_w", 0},
  };
  for (const auto& c : cases) {
    char half;
    EXPECT_EQ(unsplit(c.name, half), c.stem);
    EXPECT_EQ(half, c.half) << c.name;
  }
}

TEST(DcpKey, ReadsTheNumberBehindAStem) {
  auto dump_number = [](std::string_view name, std::string_view stem) {
    auto n = numbered(name, stem);
    return n ? cat(n->before, "|", n->number, "|", n->after) : std::string("none");
  };
  EXPECT_EQ(dump_number("decoder.layers.12.mlp", "layers."), "decoder.layers.|12|.mlp");
  EXPECT_EQ(dump_number("layers.x.layers.3", "layers."), "layers.x.layers.|3|");
  EXPECT_EQ(dump_number("layers.-3", "layers."), "none");
  EXPECT_EQ(dump_number("layers.", "layers."), "none");
  EXPECT_EQ(dump_number("layers.99999999999999999999", "layers."), "none");
  EXPECT_EQ(dump_number("iter_0000010", "iter_"), "iter_|10|");
}

TEST(OfOptimizer, IsDecidedByTheFirstPart) {
  for (std::string_view name : {"optimizer.state.exp_avg.w", "optimizers.w.exp_avg",
                                "optimizer_0.state.0.exp_avg", "optim.state.0.exp_avg", "optim_state_dict.w",
                                "app.optim.state.w", "optimizer_states/w", "optimizer"})
    EXPECT_TRUE(is_of_optimizer(name)) << name;
  for (std::string_view name :
       {"model.optimizer.w", "optimal.w", "optimizer_x.w", "app.model.w", "optimizer1.w", "w"})
    EXPECT_FALSE(is_of_optimizer(name)) << name;
}

}  // namespace key_test
}  // namespace mckpt::impl
