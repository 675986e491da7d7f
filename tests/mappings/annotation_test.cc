#include "mappings/annotation.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace mckpt {
namespace annotation_test {

using enum PartitionEvidence;

TEST(Annotation, IsBelievedInThisOrder) {
  struct Case {
    const char* what;
    PartitionClues clues;
    Partition expected;
  };
  const std::string_view gated_norm = "decoder.layers.0.mixer.norm.weight";
  const Case cases[] = {
      {"the file", {gated_norm, 1, -1, ParameterMark{true, 0}}, {-1, kFile}},
      {"the file, also for a name that nobody knows", {"a.b", 2, 1, {}}, {1, kFile}},
      {"the mark", {"decoder.layers.0.a.norm.weight", 1, {}, ParameterMark{true, 0}}, {0, kMark}},
      {"the mark, against the name", {"x.linear_fc1.weight", 2, {}, ParameterMark{true, 1}}, {1, kMark}},
      {"a bias marked with the dimension of its input", {"x.b", 1, {}, ParameterMark{true, 1}}, {-1, kMark}},
      // MLA down projections carry a dimension without the flag, GDP vectors the flag without a dimension.
      {"a dimension without the flag",
       {"x.self_attention.linear_q_down_proj.weight", 2, {}, ParameterMark{false, 0}},
       {-1, kName}},
      {"the flag without a dimension", {"x.mixer.dt_bias", 1, {}, ParameterMark{true, -1}}, {0, kName}},
      {"a Mamba mixer's gated norm, which is split", {gated_norm, 1, {}, {}}, {0, kName}},
      {"the same, with the mark that it has", {gated_norm, 1, {}, ParameterMark{true, 0}}, {0, kMark}},
      {"any other norm", {"decoder.layers.0.norm.weight", 1, {}, {}}, {-1, kNormName}},
      {"a gated delta net's norm",
       {"decoder.layers.0.self_attention.out_norm.weight", 1, {}, {}},
       {-1, kName}},
      {"a norm with another name", {"mtp.layers.0.enorm.weight", 1, {}, {}}, {-1, kNormName}},
  };
  for (const Case& c : cases) EXPECT_EQ(partition_of(c.clues), c.expected) << c.what;
}

TEST(Annotation, KnowsTheNamesOfEveryKindOfLayer) {
  struct Case {
    std::string_view name;
    int rank, dim;
  };
  const Case cases[] = {
      {"embedding.word_embeddings.weight", 2, 0},
      {"language_model.output_layer.weight", 2, 0},
      {"decoder.layers.3.self_attention.linear_qkv.weight", 2, 0},
      {"decoder.layers.3.self_attention.linear_qkv.bias", 1, 0},
      {"decoder.layers.3.self_attention.linear_qkv.layer_norm_weight", 1, -1},
      {"vision_model.decoder.layers.3.self_attention.linear_qkv.layer_norm_bias", 1, -1},
      {"decoder.layers.3.self_attention.linear_proj.weight", 2, 1},
      {"decoder.layers.3.self_attention.linear_proj.bias", 1, -1},
      {"decoder.layers.3.self_attention.q_layernorm.weight", 1, -1},
      {"decoder.layers.3.self_attention.core_attention.softmax_offset", 1, 0},
      {"decoder.layers.3.self_attention.linear_q_up_proj.weight", 2, 0},
      {"decoder.layers.3.self_attention.linear_kv_down_proj.weight", 2, -1},
      {"decoder.layers.3.self_attention.core_attention.indexer.k_norm.weight", 1, -1},
      {"decoder.layers.3.self_attention.in_proj.weight.query", 2, 0},
      {"decoder.layers.3.self_attention.conv1d.weight", 3, 0},
      {"decoder.layers.3.self_attention.A_log", 1, 0},
      {"decoder.layers.3.self_attention.out_proj.weight", 2, 1},
      {"decoder.layers.3.mixer.in_proj.weight", 2, 0},
      {"decoder.layers.3.mixer.conv1d_weight", 3, 0},
      {"decoder.layers.3.mixer.conv1d.bias.B", 1, 0},
      {"decoder.layers.3.mixer.D", 1, 0},
      {"decoder.layers.3.mlp.linear_fc1.weight_w", 2, 0},
      {"decoder.layers.3.mlp.experts.linear_fc1.weight17", 2, 0},
      {"decoder.layers.3.mlp.experts.local_experts.17.linear_fc2.weight", 2, 1},
      {"decoder.layers.3.mlp.experts.linear_fc2.bias17", 1, -1},
      {"decoder.layers.3.mlp.router.expert_bias", 1, -1},
      {"decoder.layers.3.mlp.shared_experts.gate_weight", 2, -1},
      {"decoder.layers.3.mlp.fc2_latent_proj.weight", 2, -1},
      {"mtp.layers.0.eh_proj.weight", 2, 0},
      {"vision_model.patch_embed.proj.weight", 5, -1},
      {"vision_model.merger.linear_fc2.weight", 2, 1},
      {"vision_model.merger.patch_norm.bias", 1, -1},
  };
  for (const Case& c : cases) EXPECT_EQ(partition_of({c.name, c.rank, {}, {}}).dim, c.dim) << c.name;
}

TEST(Annotation, RefusesWhatNothingSays) {
  EXPECT_EQ(thrown_by([] {
              partition_of({"decoder.layers.0.new_thing.weight", 2, {}, ParameterMark{}});
            }),
            "MC2013 tensor 'decoder.layers.0.new_thing.weight': nothing says how a tensor lies over the "
            "tensor-parallel ranks");
  EXPECT_EQ(
      thrown_by([] {
        partition_of({"a", 2, {}, ParameterMark{true, 2}});
      }),
      "MC2013 tensor 'a': the dimension along which a tensor is said to be split does not exist: expected "
      "one of 2, found 2");
  // linear_qkv.weight as a scalar.
  EXPECT_EQ(thrown_by([] {
              partition_of({"x.self_attention.linear_qkv.weight", 0, {}, {}});
            }).substr(0, 6),
            "MC2013");
}

TEST(Annotation, ReadsTheCutsOfAFile) {
  const i64 global[] = {4, 10};
  auto cut = [&](std::initializer_list<i64> sizes, bool rows_are_cut) {
    return partition_in_file(global, {sizes.begin(), sizes.size()}, rows_are_cut);
  };
  EXPECT_EQ(cut({4, 5, 4, 5}, false), 1);
  EXPECT_EQ(cut({2, 10, 2, 10}, false), 0);
  EXPECT_EQ(cut({3, 5, 3, 5, 1, 5, 1, 5}, true), 1);
  EXPECT_EQ(cut({3, 10, 1, 10}, true), std::nullopt);  // FSDP alone cuts so as well
  EXPECT_EQ(cut({2, 5, 2, 5}, false), std::nullopt);
  EXPECT_EQ(cut({4, 10}, false), std::nullopt);  // perhaps one rank wrote it
}

}  // namespace annotation_test
}  // namespace mckpt
