#include "io/store/names/zero_names.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace zero_names_test {

using Kind = ZeroName::Kind;

TEST(ZeroNames, SayTheKindAndTheRanks) {
  struct Case {
    const char* file;
    Kind kind;
    i64 rank, model_rank;
  };
  const Case cases[] = {
      {"mp_rank_00_model_states.pt", Kind::kModel, -1, 0},
      {"mp_rank_07_model_states.pt", Kind::kModel, -1, 7},
      {"zero_pp_rank_12_mp_rank_00_model_states.pt", Kind::kModel, 12, 0},
      {"zero_pp_rank_0_mp_rank_00_optim_states.pt", Kind::kOptimizer, 0, 0},
      {"bf16_zero_pp_rank_3_mp_rank_01_optim_states.pt", Kind::kOptimizer, 3, 1},
      {"fp16_zero_pp_rank_3_mp_rank_00_optim_states.pt", Kind::kOptimizer, 3, 0},
      {"layer_2_expert_5_mp_rank_00_model_states.pt", Kind::kExpert, -1, 0},
      {"expert_5_mp_rank_00_model_states.pt", Kind::kExpert, -1, 0},
      {"expp_rank_1_mp_rank_00_optim_states.pt", Kind::kExpertOptimizer, 1, 0},
      {"layer_03-model_00-model_states.pt", Kind::kPipelineLayer, -1, 0},
      {"layer_03-model_states.pt", Kind::kPipelineLayer, -1, 0},
  };
  for (const Case& c : cases) {
    std::optional<ZeroName> name = zero_name(c.file);
    ASSERT_TRUE(name) << c.file;
    EXPECT_EQ(name->kind, c.kind) << c.file;
    EXPECT_EQ(name->rank, c.rank) << c.file;
    EXPECT_EQ(name->model_rank, c.model_rank) << c.file;
  }
}

TEST(ZeroNames, SayTheLayerAndTheExpert) {
  std::optional<ZeroName> name = zero_name("layer_2_expert_5_mp_rank_00_model_states.pt");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->layer, 2);
  EXPECT_EQ(name->expert, 5);
  name = zero_name("expert_7_mp_rank_00_model_states.pt");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->layer, -1);
  EXPECT_EQ(name->expert, 7);
}

TEST(ZeroNames, LeaveOtherFilesAlone) {
  for (const char* file :
       {"", "latest", "mp_rank_00", "mp_rank__model_states.pt", "mp_rank_00_model_states.pt.bak",
        "model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.ptx", "bf16_mp_rank_00_model_states.bin",
        "bf16_fp16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "zero_pp_rank_1234567890_mp_rank_00_optim_states.pt", "model_optim_rng.pt"})
    EXPECT_FALSE(zero_name(file)) << file;
}

}  // namespace zero_names_test
}  // namespace mckpt::impl
