// The contents of each chunk of a pipeline, by the names in the files of its ranks.
#include "convert/dialects/ranks/files.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/dcp/run/sizes.h"
#include "mappings/model/expand.h"
#include "mappings/model/stages.h"
#include "tests/support/golden_config.h"
#include "tests/support/made_store.h"

namespace mckpt::impl::rank_files_test {
namespace {

// "0n 2o": chunk by chunk the number of layers, n for the final norm, m for MTP and o for the output layer;
// or the code of the error, and what it found.
std::string contents(const std::string& model, i64 stages, const std::vector<std::string>& names) {
  TempFolder folder;
  std::vector<MadeTensor> tensors;
  for (const std::string& name : names) tensors.push_back({"mp_rank_00_00" + name, {2}});
  std::unique_ptr<Store> store = made_store(folder, tensors);
  const ModelMap map = golden_map(model);
  RunSizes run;
  run.pipeline_stages = stages, run.tensor_ranks = 1;
  std::string out;
  try {
    for (const ChunkContents& c : contents_of_chunks(*store, rank_files(*store, map, run), map, run))
      out += cat(out.empty() ? "" : " ", c.layers, c.final_norm ? "n" : "", c.mtp ? "m" : "",
                 c.output ? "o" : "");
  } catch (const Error& e) {
    return cat(code_name(e.code()), " ", e.message(), ": ", e.found());
  }
  return out;
}

const std::string kNorm = "/model.decoder.final_layernorm.weight", kOutput = "/model.output_layer.weight",
                  kWord = "/model.embedding.word_embeddings.weight", kLayer = "/model.decoder.layers.";

TEST(RankFiles, SayWhatEachStageHas) {
  const std::string mtp = "/model.mtp.layers.0.enorm.weight";
  EXPECT_EQ(contents("deepseek_v3_mtp", 4,
                     {"0" + kWord, "0" + kLayer + "0.mlp.x", "1" + kLayer + "0.x", "1" + kLayer + "1.x",
                      "1" + kNorm, "2" + kWord, "2" + mtp, "3" + kOutput}),
            "1 2n 0m 0o");
  EXPECT_EQ(contents("deepseek_v3_mtp", 3,
                     {"0" + kWord, "1" + kLayer + "2.x", "1" + kNorm, "2" + kWord, "2" + mtp, "2" + kOutput}),
            "0 3n 0mo");
  EXPECT_EQ(contents("qwen3_5_mtp", 3,
                     {"0/model.language_model.embedding.word_embeddings.weight",
                      "1/model.language_model.decoder.final_layernorm.weight",
                      "1/model.language_model.mtp.layers.0.transformer_layer.x",
                      "2/model.language_model.output_layer.weight"}),
            "0 0nm 0o");
  // A tied model has the output layer under its own name.
  EXPECT_EQ(contents("tiny_llama1", 2, {"0" + kWord, "0" + kLayer + "0.x", "0" + kNorm, "1" + kOutput}),
            "1n 0mo");
}

TEST(RankFiles, CountTheChunksOfEveryStage) {
  EXPECT_EQ(contents("llama3", 2,
                     {"0/model0.decoder.layers.0.x", "1/model0.decoder.layers.1.x",
                      "0/model1.decoder.final_layernorm.weight", "1/model1.output_layer.weight"}),
            "1 2 0n 0mo");
}

// A layer that no file has is missed in the last chunk.
TEST(RankFiles, GiveTheLastChunkWhatNoFileHas) {
  EXPECT_EQ(contents("llama3", 2, {"0" + kWord, "1" + kLayer + "0.x"}), "0 1nmo");
}

TEST(RankFiles, AreRefusedWithAPartOnTwoStages) {
  EXPECT_EQ(contents("llama3", 2, {"0" + kNorm, "1" + kNorm, "1" + kOutput}),
            "MC1113 several stages have the final norm, and a run has it on one: stage 0, stage 1");
  EXPECT_EQ(
      contents("llama3", 2,
               {"0/model0.output_layer.weight", "1/model0.x", "0/model1.x", "1/model1.output_layer.weight"}),
      "MC1113 several stages have the output layer, and a run has it on one: stage 0, model0, stage 1, "
      "model1");
}

}  // namespace
}  // namespace mckpt::impl::rank_files_test
