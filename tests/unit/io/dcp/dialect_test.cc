#include "io/dcp/dialect.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

TEST(DcpDialect, IsToldByNames) {
  struct Case {
    DcpDialect want;
    std::vector<const char*> tensors, objects;
    bool has_metadata_json = false;
  };
  using enum DcpDialect;
  const Case cases[] = {
      {kFsdpDtensor, {"model.module.a", "optimizer.state.module.module.module.a.exp_avg"}, {}},
      {kFsdpDtensor, {"model.module.a"}, {"optimizer.param_to_group_meta.module.module.a.lr"}},
      {kFsdpDtensor, {"model.module.a"}, {"checkpoint_version", "iteration"}},
      {kFsdpDtensor, {"model.module.l.linear_fc1.weight_w", "model.module.l.linear_fc1.weight_v"}, {}},
      {kFsdpDtensor, {"model0.module.a", "model1.module.a"}, {"args"}},
      {kMegatronFsdp, {"model.module.a", "optimizer.state.0.exp_avg"}, {"optimizer.param_groups.0.lr"}},
      {kMegatronFsdp, {"model.module.a"}, {}},
      {kStateDict, {"model.a", "optimizer.state.a.exp_avg"}, {}},
      {kStateDict, {"model.a"}, {}},
      {kTorchDist, {"a", "optimizer.state.exp_avg.a"}, {"common_state/shard_0_1"}},
      {kTorchDist, {"a"}, {}, true},
      {kPlain, {"a", "b"}, {}},
      {kPlain, {"model.a", "ema.a"}, {}},
      {kPlain, {}, {}},
  };
  for (const Case& c : cases) {
    DialectVotes votes;
    for (const char* name : c.tensors) votes.tensor(name);
    for (const char* name : c.objects) votes.object(name);
    EXPECT_EQ(format_text(dcp_format(votes.dialect(c.has_metadata_json))), format_text(dcp_format(c.want)))
        << (c.tensors.empty() ? "" : c.tensors[0]);
  }
}

std::string dump(const DcpKey& k) {
  constexpr const char* kSections[] = {"other", "model", "state", "meta"};
  return cat(kSections[static_cast<int>(k.section)], " ", k.parameter, " ", k.field);
}

TEST(DcpDialect, TakesKeysApart) {
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

TEST(DcpDialect, KnowsHalvesOfGatedTensors) {
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

TEST(DcpDialect, ReadsTheNumberBehindAStem) {
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

}  // namespace
}  // namespace mckpt::impl
