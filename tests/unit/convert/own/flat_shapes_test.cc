// Flat tensors with the shapes of a model: every item is where it was, whatever the cuts; and what is
// refused.
#include "convert/own/flat_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/text.h"
#include "tests/support/made_store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace flat_shapes_test {

// The store of the tensors as their own model, with these shapes.
std::unique_ptr<Store> shaped(const TempFolder& folder, const std::vector<MadeTensor>& tensors,
                              const TensorShapes& shapes, std::string_view model_type = "") {
  std::vector<NamedTensor> model;
  for (const MadeTensor& t : tensors) model.push_back({std::ssize(model), t.name});
  return with_shapes(made_store(folder, tensors), model, shapes, model_type);
}

// "[0, 1]+[1, 2] ..." of the chunks of a tensor.
std::string boxes_of(const Store& store, i64 t) {
  std::string out;
  for (i64 c = 0; c < store.chunk_count(t); c++) {
    const Chunk chunk = store.chunk(t, c);
    out += cat(c > 0 ? " " : "", dims_to_string(chunk.offsets), "+", dims_to_string(chunk.sizes));
  }
  return out;
}

TEST(FlatShapes, KeepTheOrderOfItemsAtEveryCut) {
  for (i64 first = 0; first <= 24; first++)
    for (i64 second : {first, std::min<i64>(24, first + 5), i64{24}}) {
      TempFolder folder;
      auto store = shaped(folder, {{"norm", {5}}, {"w", {24}, -1, {first, second}}},
                          {{"norm", {5}}, {"w", {3, 2, 4}}});
      EXPECT_EQ(dims_to_string(store->dims(1)), "[3, 2, 4]");
      std::vector<i64> want(24);
      for (i64 i = 0; i < 24; i++) want[i] = 5 + i;
      EXPECT_EQ(values_of(*store, 1), want) << first << " " << second;
      EXPECT_EQ(values_of(*store, 0), (std::vector<i64>{0, 1, 2, 3, 4}));
    }
}

TEST(FlatShapes, CutAStretchIntoBoxes) {
  TempFolder folder;
  auto store = shaped(folder, {{"w", {24}, -1, {9}}, {"none", {0}}}, {{"w", {4, 6}}, {"none", {0, 3}}});
  EXPECT_EQ(boxes_of(*store, 0), "[1, 3]+[1, 3] [2, 0]+[2, 6] [0, 0]+[1, 6] [1, 0]+[1, 3]");
  EXPECT_EQ(boxes_of(*store, 1), "[0, 0]+[0, 3]");
}

// gate and up of three experts, and a name that the family begins otherwise on disk.
TEST(FlatShapes, AreThoseOfTensorsInMemory) {
  TensorShapes disk;
  for (int e = 0; e < 3; e++) {
    const std::string expert = cat("model.layers.0.mlp.experts.", e);
    disk[expert + ".gate_proj.weight"] = disk[expert + ".up_proj.weight"] = {2, 5};
    disk[expert + ".down_proj.weight"] = {5, 2};
  }
  auto shape = [&](std::string_view name, std::string_view type) {
    std::optional<std::vector<i64>> found = shape_in_memory(disk, name, type);
    return found ? dims_to_string(*found) : "none";
  };
  EXPECT_EQ(shape("model.layers.0.mlp.experts.gate_up_proj", "qwen3_moe"), "[3, 4, 5]");
  EXPECT_EQ(shape("model.layers.0.mlp.experts.down_proj", "qwen3_moe"), "[3, 5, 2]");
  EXPECT_EQ(shape("model.layers.0.mlp.experts.1.up_proj.weight", "qwen3_moe"), "[2, 5]");
  EXPECT_EQ(shape("model.layers.0.mlp.experts.gate_up_proj", "gpt_oss"), "none");
  EXPECT_EQ(shape("model.layers.1.mlp.experts.gate_up_proj", "qwen3_moe"), "none");
  disk = {{"backbone.norm_f.weight", {7}}};
  EXPECT_EQ(shape("model.norm_f.weight", "nemotron_h"), "[7]");
  EXPECT_EQ(shape("model.norm_f.weight", "llama"), "none");
}

// Some folders have names that a rule of their model changes; the name on disk counts where both are there.
TEST(FlatShapes, AreFoundInFoldersWithTheNamesInMemory) {
  TensorShapes folder = {{"model.language_model.norm.weight", {7}}, {"model.visual.merger.ln_q.weight", {3}}};
  auto shape = [&](std::string_view name, std::string_view type) {
    std::optional<std::vector<i64>> found = shape_in_memory(folder, name, type);
    return found ? dims_to_string(*found) : "none";
  };
  for (const char* type : {"qwen2_5_vl", "llava"}) {
    EXPECT_EQ(shape("model.language_model.norm.weight", type), "[7]") << type;
    EXPECT_EQ(shape("model.visual.merger.ln_q.weight", type), "[3]") << type;
    EXPECT_EQ(shape("model.language_model.embed_tokens.weight", type), "none") << type;
  }
  folder["model.norm.weight"] = {9};
  EXPECT_EQ(shape("model.language_model.norm.weight", "qwen2_5_vl"), "[9]");
  folder = {{"m.mlp.experts.gate_up_proj", {3, 8, 5}}};
  EXPECT_EQ(shape("m.mlp.experts.gate_up_proj", "mixtral"), "[3, 8, 5]");
  for (int e = 0; e < 2; e++) folder[cat("m.block_sparse_moe.experts.", e, ".w1.weight")] = {3, 6};
  EXPECT_EQ(shape("m.mlp.experts.gate_up_proj", "mixtral"), "[2, 6, 6]");
}

// The second name of a tied weight is not in the model's folder.
TEST(FlatShapes, OfATensorWithTheSameItems) {
  TempFolder folder;
  const std::vector<MadeTensor> tensors = {{"lm_head.weight", {6}}, {"model.embed_tokens.weight", {6}}};
  std::unique_ptr<Store> made = made_store(folder, tensors);
  auto& table = static_cast<TableStore&>(*made);
  table.tensors[0].pieces = table.tensors[1].pieces;
  std::vector<NamedTensor> model = {{0, "lm_head.weight"}, {1, "model.embed_tokens.weight"}};
  auto store = with_shapes(std::move(made), model, {{"model.embed_tokens.weight", {2, 3}}}, "");
  EXPECT_EQ(dims_to_string(store->dims(0)), "[2, 3]");
}

TEST(FlatShapes, AreNeverGuessed) {
  TempFolder folder;
  auto refusal = [&](const TensorShapes& shapes) {
    return thrown_by([&] { shaped(folder, {{"w", {24}}, {"v", {4}}}, shapes); }).substr(0, 6);
  };
  EXPECT_EQ(refusal({}), "MC2014");
  EXPECT_EQ(refusal({{"w", {4, 6}}}), "MC2005");
  EXPECT_EQ(refusal({{"w", {4, 5}}, {"v", {4}}}), "MC2011");
  EXPECT_EQ(refusal({{"w", {4, 6}}, {"v", {4}}}), "nothin");
}

}  // namespace flat_shapes_test
}  // namespace mckpt::impl
