#include "mappings/map_file/partition.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace partition_test {

using enum PartitionEvidence;

TEST(Partition, TheAnnotationIsBelievedBeforeTheName) {
  struct Case {
    const char* what;
    PartitionClues clues;
    Partition expected;
  };
  const std::string_view gated_norm = "decoder.layers.{L}.mixer.norm.weight";
  const Case cases[] = {
      {"a Mamba mixer's gated norm, which is split", {gated_norm, 1}, {0, kName}},
      {"the same, annotated", {gated_norm, 1, 0}, {0, kAnnotation}},
      {"the same, annotated as not split", {gated_norm, 1, -1}, {-1, kAnnotation}},
      {"a gated norm that nobody knows",
       {"decoder.layers.{L}.mixer.gate_norm.weight", 1, 0},
       {0, kAnnotation}},
      {"any other norm", {"decoder.layers.{L}.norm.weight", 1}, {-1, kNormName}},
      {"a gated delta net's norm", {"decoder.layers.{L}.self_attention.out_norm.weight", 1}, {-1, kName}},
      {"a norm with another name", {"mtp.layers.{M}.enorm.weight", 1}, {-1, kNormName}},
      {"against the name", {"x.linear_fc2.weight", 2, 0}, {0, kAnnotation}},
      {"a fused parameter, annotated", {"x.linear_fc1.weight", 2, 0}, {0, kAnnotation}},
      {"a bias marked with the dimension of its input", {"x.b", 1, 1}, {-1, kAnnotation}},
  };
  for (const Case& c : cases) EXPECT_EQ(partition_of(c.clues), c.expected) << c.what;
}

TEST(Partition, KnowsTheNamesOfPlainParameters) {
  struct Case {
    std::string_view name;
    int rank;
    std::string_view rule;
  };
  const Case cases[] = {
      {"embedding.word_embeddings.weight", 2, "column"},
      {"language_model.output_layer.weight", 2, "column"},
      {"decoder.layers.3.self_attention.linear_qkv.layer_norm_weight", 1, "replicate"},
      {"vision_model.decoder.layers.3.self_attention.linear_qkv.layer_norm_bias", 1, "replicate"},
      {"decoder.layers.3.self_attention.linear_proj.weight", 2, "row"},
      {"decoder.layers.3.self_attention.linear_proj.bias", 1, "replicate"},
      {"decoder.layers.3.self_attention.q_layernorm.weight", 1, "replicate"},
      {"decoder.layers.3.self_attention.core_attention.softmax_offset", 1, "column"},
      {"decoder.layers.3.self_attention.linear_q_up_proj.weight", 2, "column"},
      {"decoder.layers.3.self_attention.linear_kv_down_proj.weight", 2, "replicate"},
      {"decoder.layers.3.self_attention.core_attention.indexer.k_norm.weight", 1, "replicate"},
      {"decoder.layers.3.self_attention.A_log", 1, "column"},
      {"decoder.layers.3.self_attention.out_proj.weight", 2, "row"},
      {"decoder.layers.3.mixer.D", 1, "column"},
      {"decoder.layers.3.mlp.experts.local_experts.17.linear_fc2.weight", 2, "row"},
      {"decoder.layers.3.mlp.experts.linear_fc2.bias17", 1, "replicate"},
      {"decoder.layers.3.mlp.router.expert_bias", 1, "replicate"},
      {"decoder.layers.3.mlp.shared_experts.gate_weight", 2, "replicate"},
      {"decoder.layers.3.mlp.fc2_latent_proj.weight", 2, "replicate"},
      {"mtp.layers.0.eh_proj.weight", 2, "column"},
      {"vision_model.patch_embed.proj.weight", 5, "replicate"},
      {"vision_model.merger.linear_fc2.weight", 2, "row"},
      {"vision_model.merger.patch_norm.bias", 1, "replicate"},
  };
  for (const Case& c : cases) EXPECT_EQ(rule_of(partition_of({c.name, c.rank})), c.rule) << c.name;
}

TEST(Partition, RefusesWhatNothingSays) {
  auto refusal = [](PartitionClues clues) { return thrown_by([&] { partition_of(clues); }); };
  EXPECT_EQ(refusal({"decoder.layers.0.new_thing.weight", 2}),
            "MC2013 tensor 'decoder.layers.0.new_thing.weight': the partition of a parameter over "
            "the tensor-parallel ranks is not known");
  for (const char* fused :
       {"a.self_attention.linear_qkv.weight", "a.mixer.in_proj.weight", "a.mixer.conv1d_bias",
        "a.mlp.linear_fc1.weight", "a.mlp.experts.linear_fc1.weight{E}"})
    EXPECT_EQ(refusal({fused, 2}), cat("MC2013 tensor '", fused, "': a fused parameter needs a rule"));
  EXPECT_EQ(refusal({"a", 5, 2}),
            "MC2013 tensor 'a': no rule splits a tensor along this dimension: expected -1 to 1, found 2");
  EXPECT_EQ(refusal({"x.output_layer.weight", 0}).substr(0, 6), "MC2013");  // a scalar
}

}  // namespace partition_test
}  // namespace mckpt::impl
