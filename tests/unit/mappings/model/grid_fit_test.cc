#include "mappings/model/fit/grid_fit.h"

#include <gtest/gtest.h>

#include "core/fsdp/grid.h"
#include "mappings/config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace grid_fit_test {

Grid grid(i64 tp, i64 cp) { return {.tp = tp, .cp = cp}; }

ModelConfig model_of(Mixer mixer) {
  ModelConfig model;
  model.text.layers = {{Mixer::kAttention, Ffn::kDense}, {mixer, Ffn::kNone}};
  return model;
}

bool fits(const ModelConfig& model, const Grid& grid) {
  std::string told = thrown_by([&] { refuse_misfit(model, grid); });
  EXPECT_TRUE(told == "nothing" || told.starts_with("MC2007")) << told;
  return told == "nothing";
}

// As Megatron's GatedDeltaNet asserts: key heads and value heads are multiples of tp*cp.
TEST(GridFit, GatedDeltaNetsNeedBothKindsOfHeads) {
  for (i64 keys : {1, 2, 4, 6, 16})
    for (i64 values : {2, 4, 8, 12, 32})
      for (i64 tp : {1, 2})
        for (i64 cp : {2, 3, 4, 8}) {
          ModelConfig model = model_of(Mixer::kGdn);
          model.gdn.key_heads = keys, model.gdn.value_heads = values;
          EXPECT_EQ(fits(model, grid(tp, cp)), keys % (tp * cp) == 0 && values % (tp * cp) == 0)
              << keys << " " << values << " " << tp << " " << cp;
        }
}

// As Megatron's MambaContextParallel asserts, for the heads and groups of one tensor-parallel rank.
TEST(GridFit, MambaNeedsHeadsAndGroups) {
  struct Case {
    i64 heads, groups, tp, cp;
    bool fits;
  };
  for (const Case& c : {Case{8, 4, 1, 2, true},    // two groups each
                        Case{8, 4, 1, 8, true},    // two ranks share a group
                        Case{8, 4, 2, 4, true},    // two groups a rank, two ranks share one
                        Case{8, 4, 1, 3, false},   // heads
                        Case{8, 4, 4, 4, false},   // two heads a rank over four
                        Case{12, 4, 1, 6, false},  // 6 is not a multiple of 4 groups
                        Case{12, 6, 1, 4, false},  // nor 4 of 6
                        Case{12, 6, 2, 3, true}}) {
    ModelConfig model = model_of(Mixer::kMamba);
    model.mamba.heads = c.heads, model.mamba.groups = c.groups;
    EXPECT_EQ(fits(model, grid(c.tp, c.cp)), c.fits)
        << c.heads << " " << c.groups << " " << c.tp << " " << c.cp;
  }
}

TEST(GridFit, OtherModelsTakeAnyContextParallelSize) {
  EXPECT_TRUE(fits(model_of(Mixer::kAttention), grid(1, 7)));
  ModelConfig unused = model_of(Mixer::kLatentAttention);
  unused.gdn.key_heads = 3, unused.mamba.heads = 5;
  EXPECT_TRUE(fits(unused, grid(1, 7)));
  // One whose recurrent layers are in its MTP part alone does not.
  unused.mtp.layers = {{Mixer::kGdn, Ffn::kNone}};
  EXPECT_FALSE(fits(unused, grid(1, 7)));
}

TEST(GridFit, LayersAndExpertsDivide) {
  ModelConfig model = model_of(Mixer::kAttention);
  model.moe.experts = 6;
  EXPECT_TRUE(fits(model, {.ep = 3, .pp = 2}));
  EXPECT_FALSE(fits(model, {.ep = 4}));
  EXPECT_FALSE(fits(model, {.pp = 3}));
}

}  // namespace grid_fit_test
}  // namespace mckpt::impl
