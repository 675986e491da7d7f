// Files of ranks: what their names say, and the boxes that their pieces become.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/file/folder.h"
#include "io/store/names/torch_names.h"
#include "io/store/open/checkpoints_below.h"
#include "io/store/store.h"
#include "tests/support/chunk_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

std::string data_path(const std::string& name) { return cat(MCKPT_TEST_DATA, "/rank_files/", name); }

TEST(RankName, HasGroupWorldAndRank) {
  struct {
    const char *file, *group;
    i64 world, rank;
  } cases[] = {{"model_world_size_4_rank_1.pt", "model", 4, 1},
               {"optim_world_size_16_rank_10.pt", "optim", 16, 10},
               {"model_rank_2.pt", "model", -1, 2},
               {"pytorch_model_fsdp_0_rank3.bin", "pytorch_model_fsdp_0", -1, 3},
               {"pytorch_model_fsdp_rank0.bin", "pytorch_model_fsdp", -1, 0},
               {"optimizer_1_rank12.bin", "optimizer_1", -1, 12}};
  for (const auto& c : cases) {
    std::optional<RankName> name = rank_name(c.file);
    ASSERT_TRUE(name) << c.file;
    EXPECT_EQ(cat(name->group, " ", name->world, " ", name->rank), cat(c.group, " ", c.world, " ", c.rank));
  }
  for (const char* file : {"model.pt", "lora_rank.pt", "rank_0.pt.bak", "_rank0.bin", "model_rank_x.pt",
                           "model_rank__0.pt", "model_rank_12345678901.pt", "rng_state_0.pth"})
    EXPECT_FALSE(rank_name(file)) << file;
}

TEST(RankFiles, PlaceShardsByTheirOffsets) {
  std::unique_ptr<Store> store = open_store(data_path("shards"));
  EXPECT_TRUE(store->findings().empty());
  EXPECT_EQ(store->ranks(), 3);
  EXPECT_EQ(chunks_of(*store, "model.embed_tokens.weight"),
            "0 [0, 0]+[4, 4] 1 [4, 0]+[4, 4] 2 [8, 0]+[3, 4] ");
  EXPECT_EQ(chunks_of(*store, "model.layers.0.mlp.gate.weight"), "0 [0, 0]+[1, 4] 1 [1, 0]+[1, 4] ");
  EXPECT_EQ(chunks_of(*store, "model.layers.0.mlp.gate.e_score_correction_bias"),
            "0 [0]+[3] 1=[0]+[3] 2=[0]+[3] ");
}

TEST(RankFiles, TakeOneOfTheGroupsThatHaveTheSame) {
  std::unique_ptr<Store> store = open_store(data_path("replicas"));
  EXPECT_TRUE(store->findings().empty());
  EXPECT_EQ(chunks_of(*store, "model.embed_tokens.weight"),
            "0 [0, 0]+[6, 4] 1 [6, 0]+[5, 4] 2=[0, 0]+[6, 4] 3=[6, 0]+[5, 4] ");
}

// A mesh that is a part of a grid: the pickles of all ranks have the same numbers, and each means the row of
// its rank.
TEST(RankFiles, TakeTheRowOfEachRankInAGrid) {
  for (const char* name : {"rows", "older_rows"}) {  // torch before 2.10 pickles the row itself
    std::unique_ptr<Store> store = open_store(data_path(name));
    EXPECT_TRUE(store->findings().empty()) << name;
    EXPECT_EQ(chunks_of(*store, "model.embed_tokens.weight"),
              "0 [0, 0]+[6, 4] 1 [6, 0]+[5, 4] 2=[0, 0]+[6, 4] 3=[6, 0]+[5, 4] ");
    EXPECT_EQ(chunks_of(*store, "model.layers.0.self_attn.q_proj.weight"),
              "0 [0, 0]+[3, 4] 1=[0, 0]+[3, 4] 2 [3, 0]+[3, 4] 3=[3, 0]+[3, 4] ");
    EXPECT_EQ(chunks_of(*store, "model.layers.0.mlp.gate.weight"),
              "0 [0, 0]+[1, 2] 1 [0, 2]+[1, 2] 2 [1, 0]+[1, 2] 3 [1, 2]+[1, 2] ");
    EXPECT_EQ(chunks_of(*store, "model.norm.weight"), "0 [0]+[1] 1 [1]+[1] 2 [2]+[1] 3 [3]+[1] ");
  }
}

TEST(RankFiles, ShowOneFileOfShards) {
  std::unique_ptr<Store> store = open_store(data_path("shards/model_world_size_3_rank_2.pt"));
  EXPECT_EQ(chunks_of(*store, "model.embed_tokens.weight"), "-1 [8, 0]+[3, 4] ");
  EXPECT_EQ(chunks_of(*store, "model.layers.0.mlp.gate.weight"), "-1 [0, 0]+[0, 4] ");
  ASSERT_EQ(store->findings().size(), 1u);
  EXPECT_EQ(store->findings()[0].code, Code::kShardAlone);
  EXPECT_NE(store->findings()[0].message.find("rank 2 of 3"), std::string::npos);
}

// A missing rank must not move the pieces of the ranks after it.
TEST(RankFiles, KeepPlacesWhereARankIsMissing) {
  TempFolder folder;
  for (const char* rank : {"0", "2"})
    std::filesystem::copy(data_path(cat("pieces/model_world_size_3_rank_", rank, ".pt")), folder.path());
  std::unique_ptr<Store> store = open_store(folder.path());
  EXPECT_EQ(chunks_of(*store, "model.embed_tokens.weight"), "0 [0, 0]+[4, 4] 2 [8, 0]+[3, 4] ");
  EXPECT_FALSE(store->findings().empty());
}

TEST(CheckpointsBelow, AreFoundTwoLevelsDown) {
  TempFolder folder;
  auto add = [&](const std::string& name) {
    std::filesystem::create_directories(cat(folder.path(), "/", name));
    std::filesystem::copy_file(data_path("trainer/scheduler.bin"),
                               cat(folder.path(), "/", name, "/model.bin"));
  };
  add("b/actor"), add("a"), add(".hidden"), add("c/d/e"), add("f/g/h/i");
  std::filesystem::create_directories(cat(folder.path(), "/none/x"));
  EXPECT_EQ(listed(checkpoints_below(Folder(folder.path()))), "a, b, c");
}

}  // namespace
}  // namespace mckpt::impl
