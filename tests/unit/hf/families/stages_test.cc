// The part of a model that each stage of a pipeline has, where a run's layout puts the parts that are in no
// layer.
#include "mappings/model/stages.h"

#include <gtest/gtest.h>

#include "core/fsdp/grid.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"
#include "tests/support/golden_config.h"

namespace mckpt::impl::stages_of_models_test {
namespace {

// The parameters of Megatron-Core 0.16.1 on the stages of its layouts: the embedding is with MTP once more,
// the final norm with the last layer, and tied models have a weight of the output layer on its stage.
std::string held(const ModelMap& map, const std::vector<ChunkContents>& chunks) {
  const i64 stages = std::ssize(chunks);
  const PipelineSplit split(stages, chunks);
  Grid grid;
  grid.pp = stages;
  std::string out;
  for (i64 stage = 0; stage < stages; stage++) {
    Cell cell;
    cell.pp = stage;
    if (stage > 0) out += " | ";
    std::string last;
    for (const ModelParameter& p : map.parameters(grid, cell, {}, split.part(stage, 0))) {
      std::string name = p.global_name.substr(0, p.global_name.find('.'));
      if (name == "decoder")
        name = p.global_name.starts_with("decoder.layers.") ? cat("layer ", p.global_name[15]) : "norm";
      if (name != last) out += cat(last.empty() ? "" : ", ", name);
      last = name;
    }
  }
  return out;
}

TEST(Stages, HaveWhatIsInNoLayerWhereALayoutPutsIt) {
  const ModelMap mtp = golden_map("deepseek_v3_mtp"), tied = golden_map("tiny_llama1");
  EXPECT_EQ(held(mtp, {{1}, {1, true}, {0, false, true}, {0, false, false, true}}),
            "embedding, layer 0 | layer 1, norm | embedding, mtp | output_layer");
  EXPECT_EQ(held(mtp, {{0}, {2, true}, {0, false, true, true}}),
            "embedding | layer 0, layer 1, norm | embedding, mtp, output_layer");
  EXPECT_EQ(held(mtp, {{1}, {1, true, true, true}}),
            "embedding, layer 0 | embedding, layer 1, norm, mtp, output_layer");
  EXPECT_EQ(held(tied, {{0}, {1}, {0, true, false, true}}), "embedding | layer 0 | norm, output_layer");
}

}  // namespace
}  // namespace mckpt::impl::stages_of_models_test
