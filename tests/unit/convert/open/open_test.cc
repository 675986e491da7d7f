// The kind of an opened store, by names and formats of stores that are made in memory.
#include "convert/open/open.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/model.h"
#include "io/store/store.h"
#include "tests/support/table_store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace open_test {

std::unique_ptr<TableStore> made(Format format, std::vector<std::string> names) {
  auto store = std::make_unique<TableStore>("memory");
  store->set_format(format);
  for (std::string& name : names) {
    store->tensors.push_back({std::move(name), DType::kF32, {2}, {}});
    store->tensors.back().pieces.push_back({{0}, {2}, {.file = 0, .dtype = DType::kF32}});
  }
  return store;
}

const std::vector<std::string> kOwn = {"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"};
const std::vector<std::string> kMegatron = {"embedding.word_embeddings.weight",
                                            "decoder.layers.0.mlp.linear_fc1.weight"};

TEST(Open, TakesTheModelsOwnNamesForAModelWhateverTheFormat) {
  for (Format format :
       {Format::kSafetensors, Format::kSafetensorsFolder, Format::kTorchFiles, Format::kDeepSpeed})
    EXPECT_TRUE(is_of_model(*made(format, kOwn))) << format_text(format);
  EXPECT_FALSE(is_of_model(*made(Format::kMegatronRanks, kMegatron)));
  EXPECT_FALSE(is_of_model(*made(Format::kTorchFiles, kMegatron)));
}

TEST(Open, TellsAFolderOfWeightsFromShardsOfRanks) {
  EXPECT_TRUE(made(Format::kSafetensors, kOwn)->driver().hf_weights);
  EXPECT_TRUE(made(Format::kSafetensorsFolder, kOwn)->driver().hf_weights);
  EXPECT_FALSE(made(Format::kSafetensorsShards, kOwn)->driver().hf_weights);
  EXPECT_FALSE(made(Format::kTorchFiles, kOwn)->driver().hf_weights);
}

TEST(Open, OfAModelWithoutATableHasItsTensors) {
  Opened o = open_own(made(Format::kTorchFiles, {"lm_head.weight", "model.norm.weight"}),
                      {.source = "memory", .complete = false});
  ASSERT_TRUE(o.own);
  EXPECT_FALSE(o.in_memory());
  EXPECT_EQ(o.model(), nullptr);
  EXPECT_EQ(&o.store(), &o.on_disk());
  EXPECT_EQ(o.own->tensors.size(), 2u);
  EXPECT_EQ(o.folders, std::vector<std::string>{"memory"});
  EXPECT_FALSE(o.original());
}

TEST(Open, RefusesAHubFolderWhereACheckpointIsWanted) {
  for (Format format : {Format::kSafetensors, Format::kSafetensorsFolder}) {
    const std::string said =
        thrown_by([&] { open(made(format, kOwn), {.source = "memory", .with_table = false}); });
    EXPECT_EQ(said.substr(0, 6), "MC1112") << said;
  }
}

TEST(Open, RefusesADictOfACheckpointOfMegatron) {
  const std::string said = thrown_by(
      [&] { open(made(Format::kMegatronRanks, kMegatron), {.source = "memory", .model_dict = "actor"}); });
  EXPECT_EQ(said.substr(0, 6), "MC0001") << said;
}

TEST(Open, PlainKeepsTheFilesAsTheyAre) {
  Opened o = open_plain(made(Format::kTorchFiles, kMegatron), "memory",
                        {{.code = Code::kMixedSaves, .message = "odd", .warning = true}});
  EXPECT_EQ(o.store().name(0), kMegatron[0]);
  ASSERT_EQ(o.damage.size(), 1u);
  EXPECT_EQ(o.damage[0].root, "memory");
  EXPECT_EQ(o.damage[0].findings.size(), 1u);
}

// A path is opened once: the store that was looked at becomes the model's store.
TEST(Open, TakesTheStoreThatWasLookedAt) {
  const std::string path = cat(MCKPT_TEST_DATA, "/models/tiny_qwen3_moe");
  std::unique_ptr<Store> store = open_store(path);
  const Store* looked_at = store.get();
  Opened o = open(std::move(store), {.source = path});
  ASSERT_TRUE(o.table);
  EXPECT_EQ(&o.store(), looked_at);
  EXPECT_EQ(o.looked_at, nullptr);
}

// A store that is not of the path itself is kept, and the model is read in its own way.
TEST(Open, KeepsAStoreThatIsNotOfTheModel) {
  const std::string path = cat(MCKPT_TEST_DATA, "/models/tiny_qwen3_moe");
  Opened o = open_table(made(Format::kSafetensorsFolder, kOwn), {.source = path});
  ASSERT_TRUE(o.table && o.looked_at);
  EXPECT_EQ(o.looked_at->root(), "memory");
  EXPECT_EQ(o.store().root(), path);
}

// The tensors that are written of a model under its own names become the store.
TEST(Open, GivesTheTensorsThatAreWritten) {
  Opened o = as_written(open_own(made(Format::kTorchFiles, {"optimizer.x", "model.norm.weight"}),
                                 {.source = "memory", .complete = false}));
  EXPECT_FALSE(o.own);
  ASSERT_TRUE(o.plain);
  EXPECT_EQ(o.folders, std::vector<std::string>{"memory"});
  ASSERT_EQ(o.store().tensor_count(), 1);
  EXPECT_EQ(o.store().name(0), "model.norm.weight");
}

}  // namespace open_test
}  // namespace mckpt::impl
