// Which tensors of a model's folder are buffers that a checkpoint need not have.
#include "hf/folder/computed_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "convert/open/openers.h"
#include "core/base/text.h"
#include "hf/folder/known_tensors.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace computed_buffers_test {

// The names that are left out of a folder's, of a checkpoint with these.
std::vector<std::string> left_out(const std::vector<KnownTensor>& folder,
                                  const std::vector<std::string>& names) {
  TableStore store("nowhere");
  for (const std::string& name : names) store.tensors.push_back({name, DType::kF32, {}, {}});
  KnownTensors own;
  own.tensors = folder;
  std::vector<std::string> out = leave_out_buffers(own, store);
  EXPECT_EQ(own.tensors.size() + out.size(), folder.size());
  for (const KnownTensor& t : own.tensors) EXPECT_EQ(std::ranges::find(out, t.name), out.end());
  return out;
}

using Names = std::vector<std::string>;

TEST(ComputedBuffers, AreLeftOutIfTheFolderAloneHasThem) {
  const std::vector<KnownTensor> folder = {
      {"model.layers.0.self_attn.rotary_emb.inv_freq", {{4}}},
      {"h.0.attn.bias", {{1, 1, 8, 8}}},
      {"h.0.attn.masked_bias", {std::vector<i64>{}}},
      {"bert.embeddings.position_ids", std::nullopt},
      {"model.norm.weight", {{8}}},
  };
  EXPECT_EQ(left_out(folder, {"model.norm.weight"}),
            (Names{"model.layers.0.self_attn.rotary_emb.inv_freq", "h.0.attn.bias", "h.0.attn.masked_bias",
                   "bert.embeddings.position_ids"}));
  EXPECT_EQ(left_out(folder, {"bert.embeddings.position_ids", "transformer.h.0._orig_mod.attn.bias",
                              "model.layers.1.self_attn.rotary_emb.inv_freq"}),
            (Names{"model.layers.0.self_attn.rotary_emb.inv_freq", "h.0.attn.masked_bias"}));
}

// A vector, a bias of positions for each head, an index without shapes, and longer words.
TEST(ComputedBuffers, AreNoParameters) {
  EXPECT_EQ(left_out({{"h.0.attn.bias", {{8}}},
                      {"h.1.attn.bias", {{1, 4, 8, 8}}},
                      {"h.2.attn.bias", {{1, 1, 8, 4}}},
                      {"h.3.attn.bias", std::nullopt},
                      {"h.4.c_attn.bias", {{1, 1, 8, 8}}},
                      {"h.5.attn.bias.weight", {{1, 1, 8, 8}}},
                      {"my_position_ids", {{1, 8}}}},
                     {}),
            Names{});
}

// As GPT-2 on the hub, whose folder has no "transformer." in front.
TEST(ComputedBuffers, AreNamedInANote) {
  TempFolder folder;
  folder.put("config.json", R"({"model_type": "nobody_knows_it"})");
  folder.put("model.safetensors",
             safetensors_file(cat("{", safetensors_entry("h.0.attn.bias", "F32", "1,1,2,2", 0, 16), ",",
                                  safetensors_entry("h.0.w", "F32", "1,2", 16, 24), "}"),
                              std::string(24, '\0')));
  folder.put("data", std::string(8, '\1'));
  auto store = std::make_unique<TableStore>(folder.path());
  store->add_file("data", 8);
  store->tensors = {
      {"transformer.h.0.w", DType::kF32, {1, 2}, {{{0, 0}, {1, 2}, {.file = 0, .dtype = DType::kF32}}}}};
  const OwnModel model = open_own_model(std::move(store), {.source = folder.path(), .assets = folder.path()});
  ASSERT_EQ(model.tensors.size(), 1u);
  EXPECT_EQ(model.tensors[0].name, "h.0.w");
  ASSERT_FALSE(model.notes.empty());
  EXPECT_NE((*model.notes.begin()).text.find("left    1 buffer of "), std::string::npos);
  EXPECT_TRUE((*model.notes.begin()).text.ends_with(": h.0.attn.bias"));
}

}  // namespace computed_buffers_test
}  // namespace mckpt::impl
