// Adapters name tensors as a model has them in memory; the tables say which tensors of the folder these are.
#include "convert/own/memory_names.h"

#include <gtest/gtest.h>

#include <memory>

namespace mckpt::impl {
namespace {

using Parts = std::vector<std::string>;

std::unique_ptr<MemoryNames> names_of(const char* model_type, const char* architecture) {
  return memory_names()(model_type, architecture);
}

TEST(MemoryNames, AreThoseOfTheFolderByTheTableOfClasses) {
  const auto names = names_of("deepseek_v4", "DeepseekV4ForCausalLM");
  EXPECT_EQ(names->on_disk("lm_head.weight"), "head.weight");
  EXPECT_EQ(names->on_disk("model.layers.0.mlp.shared_experts.down_proj.weight"),
            "model.layers.0.ffn.shared_experts.w2.weight");
  EXPECT_EQ(names->parts("model.layers.0.mlp.shared_experts.down_proj.weight"), Parts());
  EXPECT_EQ(names->parts("model.layers.0.mlp.experts.gate_up_proj"),
            (Parts{"model.layers.0.ffn.experts.{E}.w1.weight", "model.layers.0.ffn.experts.{E}.w3.weight"}));
}

TEST(MemoryNames, TellATensorThatTheFolderHasInPartsFromOneInAnotherOrder) {
  const auto minimax = names_of("minimax_m3_vl", "MiniMaxM3SparseForConditionalGeneration");
  EXPECT_EQ(minimax->parts("model.language_model.layers.0.mlp.gate_up_proj.weight").size(), 2u);
  const auto step = names_of("step3p7", "Step3p7ForConditionalGeneration");
  const std::string joined = "model.vision_model.layers.0.self_attn.k_proj.weight";
  EXPECT_TRUE(step->rearranged(joined));
  EXPECT_EQ(step->on_disk(joined), joined);
  EXPECT_EQ(step->parts(joined), Parts());
  EXPECT_FALSE(step->rearranged("lm_head.weight"));
  EXPECT_EQ(step->parts("model.language_model.layers.1.mlp.experts.gate_up_proj"),
            (Parts{"model.layers.1.moe.gate_proj.weight", "model.layers.1.moe.up_proj.weight"}));
}

TEST(MemoryNames, OfATypeWithRulesComeFromThem) {
  const auto mixtral = names_of("mixtral", "MixtralForCausalLM");
  EXPECT_EQ(mixtral->parts("model.layers.0.mlp.experts.down_proj"),
            Parts{"model.layers.0.block_sparse_moe.experts.{E}.w2.weight"});
}

}  // namespace
}  // namespace mckpt::impl
