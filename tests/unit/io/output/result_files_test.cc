#include "io/output/result_files.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

using Names = std::vector<std::string>;

TEST(ResultFiles, KnowsWhatResultsConsistOf) {
  TempFolder temp;
  for (const char* name :
       {"run/.metadata", "run/__0_0.distcp", "run/common.pt", "run/metadata.json", "run/train_state.pt",
        "run/.plan", "run/.done", "run/hf_assets/config.json", "run/hf_assets/tokenizer.json",
        "run/hf_assets/mckpt_tensors.json", "hf/config.json", "hf/model-00001-of-00002.safetensors",
        "hf/model.safetensors.index.json", "hf/merges.txt", "hf/tokenizer_config.json", "hf/qwen.tiktoken",
        "hf/README.md"})
    temp.put(name, "x");
  EXPECT_EQ(foreign_files(temp.at("run"), {}), Names{});
  EXPECT_EQ(foreign_files(temp.at("hf"), {}), Names{});
}

TEST(ResultFiles, NamesAllOthers) {
  TempFolder temp;
  for (const char* name : {"hf/config.json", "hf/notes10", "hf/notes9", "hf/model.py", "hf/pytorch_model.bin",
                           "hf/deep/er/config.json", "hf/hf_assets/deep/config.json"})
    temp.put(name, "x");
  std::filesystem::create_directories(temp.at("hf/empty"));
  std::filesystem::create_symlink("config.json", temp.at("hf/tokenizer.json"));
  EXPECT_EQ(foreign_files(temp.at("hf"), {}),
            (Names{"deep/er/config.json", "empty/", "hf_assets/deep/config.json", "model.py", "notes9",
                   "notes10", "pytorch_model.bin", "tokenizer.json"}));
  EXPECT_EQ(
      foreign_files(temp.at("hf"), {"model.py", "notes9", "deep/er/config.json", "hf_assets/notes10"}).size(),
      5u);
}

// Known names alone make no checkpoint.
TEST(ResultFiles, WantsACheckpoint) {
  TempFolder temp;
  temp.put("home/README.md", "x");
  EXPECT_EQ(foreign_files(temp.at("home"), {}), Names{"README.md"});
  std::filesystem::create_directories(temp.at("none"));
  EXPECT_EQ(foreign_files(temp.at("none"), {}), Names{});
}

}  // namespace
}  // namespace mckpt::impl
