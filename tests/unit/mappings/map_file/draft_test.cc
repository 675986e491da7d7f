// Which family is nearest to tensors, and what its draft leaves to a person.
#include "mappings/map_file/draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/source_table.h"
#include "mappings/registry.h"

namespace mckpt::impl {
namespace draft_test {

constexpr i64 kHidden = 12, kHeads = 4, kGroups = 2, kHead = 3, kFfn = 10, kVocab = 14, kLayers = 2;

using Shapes = std::map<std::string, std::vector<i64>>;

// A model of two layers with these tensors in each.
Shapes model_of(const Shapes& layer) {
  Shapes out = {{"model.embed_tokens.weight", {kVocab, kHidden}},
                {"model.norm.weight", {kHidden}},
                {"lm_head.weight", {kVocab, kHidden}}};
  for (i64 n = 0; n < kLayers; n++)
    for (const auto& [name, dims] : layer) out.emplace(cat("model.layers.", n, ".", name), dims);
  return out;
}

Shapes llama_layer() {
  return {{"self_attn.q_proj.weight", {kHeads * kHead, kHidden}},
          {"self_attn.k_proj.weight", {kGroups * kHead, kHidden}},
          {"self_attn.v_proj.weight", {kGroups * kHead, kHidden}},
          {"self_attn.o_proj.weight", {kHidden, kHeads * kHead}},
          {"mlp.gate_proj.weight", {kFfn, kHidden}},
          {"mlp.up_proj.weight", {kFfn, kHidden}},
          {"mlp.down_proj.weight", {kHidden, kFfn}},
          {"input_layernorm.weight", {kHidden}},
          {"post_attention_layernorm.weight", {kHidden}}};
}

ModelConfig numbers(bool qk_norm = false, bool qkv_bias = false) {
  ModelConfig model;
  model.vocab = kVocab;
  TowerConfig& t = model.text;
  t.hidden = kHidden, t.heads = kHeads, t.kv_groups = kGroups, t.head_dim = kHead, t.ffn = kFfn;
  t.qk_norm = qk_norm, t.qkv_bias = qkv_bias;
  t.layers.assign(kLayers, LayerSpec{});
  return model;
}

std::vector<NameKind> kinds_of(const Shapes& shapes) {
  SourceTable table;
  for (const auto& [name, dims] : shapes) table.add({name, dims});
  return name_kinds(table);
}

std::vector<std::string> unfit(const Explained& e) {
  std::vector<std::string> out;
  for (const MapRow& row : e.unfit) out.push_back(row.megatron);
  return out;
}

TEST(NameKinds, HavePlaceholdersForLayersAndExperts) {
  const std::vector<NameKind> kinds = kinds_of({{"h.0.w", {2}},
                                                {"h.1.w", {2}},
                                                {"h.0.experts.3.w", {2, 2}},
                                                {"h.1.experts.0.w", {2, 3}},
                                                {"layers.x.w", {1}},
                                                {"stem.0.w", {1}}});
  std::vector<std::string> found;
  for (const NameKind& k : kinds)
    found.push_back(cat(k.name, " ", k.tensors, k.sized ? "" : " of several shapes"));
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"h.{L}.experts.{E}.w 2 of several shapes", "h.{L}.w 2",
                                             "layers.x.w 1", "stem.0.w 1"}));
}

TEST(Explained, IsAllOfAModelOfTheFamily) {
  const ModelConfig model = numbers();
  const std::vector<NameKind> kinds = kinds_of(model_of(llama_layer()));
  const Explained e = explained_by(family_named("llama"), kinds, &model, nullptr);
  EXPECT_EQ(e.tensors, 3 + 9 * kLayers);
  EXPECT_EQ(unfit(e), std::vector<std::string>());
  EXPECT_TRUE(e.unknown.empty());
}

// Queries and keys with norms are Qwen3's; Qwen2 has biases instead.
TEST(Explained, TellsQwen3FromQwen2) {
  Shapes layer = llama_layer();
  layer["self_attn.q_norm.weight"] = layer["self_attn.k_norm.weight"] = {kHead};
  const std::vector<NameKind> kinds = kinds_of(model_of(layer));
  const ModelConfig of_qwen3 = numbers(true), of_qwen2 = numbers(false, true);
  const Explained qwen3 = explained_by(family_named("qwen3"), kinds, &of_qwen3, nullptr),
                  qwen2 = explained_by(family_named("qwen2"), kinds, &of_qwen2, nullptr);
  EXPECT_EQ(qwen3.tensors, 3 + 11 * kLayers);
  EXPECT_TRUE(qwen3.unfit.empty());
  EXPECT_EQ(qwen2.tensors, 3 + 9 * kLayers);
  EXPECT_EQ(unfit(qwen2), std::vector<std::string>{"decoder.layers.{L}.self_attention.linear_qkv.bias"});
}

TEST(Explained, AskForTheShapeToo) {
  Shapes layer = llama_layer();
  layer["mlp.down_proj.weight"] = {kHidden, kFfn + 1};
  const ModelConfig model = numbers();
  const std::vector<NameKind> kinds = kinds_of(model_of(layer));
  const Explained e = explained_by(family_named("llama"), kinds, &model, nullptr);
  EXPECT_EQ(e.tensors, 3 + 8 * kLayers);
  ASSERT_EQ(unfit(e), std::vector<std::string>{"decoder.layers.{L}.mlp.linear_fc2.weight"});
  EXPECT_EQ(e.unfit[0].todo,
            "model.layers.{L}.mlp.down_proj.weight has the shape [12, 11], not [hidden ffn] = [12, 10]");
  EXPECT_TRUE(e.unknown.empty()) << "the row names the tensor";
  EXPECT_EQ(unfit(explained_by(family_named("llama"), kinds, nullptr, &model)), unfit(e))
      << "by the usual numbers";
  EXPECT_TRUE(explained_by(family_named("llama"), kinds, nullptr, nullptr).unfit.empty()) << "by names alone";
}

// A model need not have the layers of multi-token prediction, so their rows are never missing; a tensor of them with
// another shape is left to a person all the same.
TEST(Draft, LosesNoTensorOfMtp) {
  Shapes shapes = model_of(llama_layer());
  shapes["model.mtp_layers.0.input_proj.weight"] = {kHidden + 5, 2 * kHidden};
  const ModelConfig model = numbers(false, true);
  const std::vector<NameKind> kinds = kinds_of(shapes);
  const Explained e = explained_by(family_named("mimo"), kinds, &model, nullptr);
  ASSERT_EQ(e.unknown.size(), 1u);
  EXPECT_EQ(kinds[e.unknown[0]].dims, (std::vector<i64>{kHidden + 5, 2 * kHidden}));
}

TEST(Draft, HasTheRowsThatDoNotFitAndTheTensorsThatNoRowReads) {
  Shapes layer = llama_layer();
  layer.erase("self_attn.q_proj.weight"), layer.erase("self_attn.k_proj.weight"),
      layer.erase("self_attn.v_proj.weight");
  layer["self_attn.qkv_proj.weight"] = {(kHeads + 2 * kGroups) * kHead, kHidden};
  const ModelConfig model = numbers();
  const std::vector<NameKind> kinds = kinds_of(model_of(layer));
  const MapFile map = draft_map(explained_by(family_named("llama"), kinds, &model, nullptr), kinds);
  EXPECT_EQ(map.base, "llama");
  ASSERT_EQ(map.rows.size(), 2u);
  EXPECT_EQ(map.rows[0].megatron, "decoder.layers.{L}.self_attention.linear_qkv.weight");
  EXPECT_EQ(map.rows[0].rule, "qkv");
  EXPECT_EQ(map.rows[0].sources.size(), 3u);
  EXPECT_EQ(
      map.rows[0].todo,
      "no tensor is model.layers.{L}.self_attn.q_proj.weight; no tensor is model.layers.{L}.self_attn.k_proj.weight; "
      "no tensor is model.layers.{L}.self_attn.v_proj.weight");
  EXPECT_EQ(map.rows[1].megatron, "");
  EXPECT_EQ(map.rows[1].sources,
            (std::vector<MapRow::Source>{{"model.layers.{L}.self_attn.qkv_proj.weight", "24 12"}}));
  EXPECT_EQ(map.rows[1].todo, "no row of llama reads this tensor: which parameter is it?");
}

// The same model for each of two forms of experts: a family that reads both needs a row of one.
TEST(Explained, TakeAnyFormOfExperts) {
  ModelConfig model = numbers(true);
  model.moe.experts = 2, model.moe.ffn = kFfn;
  for (LayerSpec& l : model.text.layers) l.ffn = Ffn::kMoe;
  Shapes layer = llama_layer();
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) layer.erase(cat("mlp.", name, ".weight"));
  layer["self_attn.q_norm.weight"] = layer["self_attn.k_norm.weight"] = {kHead};
  layer["mlp.gate.weight"] = {2, kHidden};
  Shapes apart = layer, fused = layer;
  for (i64 e = 0; e < 2; e++) {
    apart[cat("mlp.experts.", e, ".gate_proj.weight")] =
        apart[cat("mlp.experts.", e, ".up_proj.weight")] = {kFfn, kHidden};
    apart[cat("mlp.experts.", e, ".down_proj.weight")] = {kHidden, kFfn};
  }
  fused["mlp.experts.gate_up_proj"] = {2, 2 * kFfn, kHidden};
  fused["mlp.experts.down_proj"] = {2, kHidden, kFfn};
  for (const Shapes& form : {apart, fused}) {
    const std::vector<NameKind> kinds = kinds_of(model_of(form));
    const Explained e = explained_by(family_named("qwen3_moe"), kinds, &model, nullptr);
    EXPECT_EQ(unfit(e), std::vector<std::string>());
    EXPECT_EQ(e.tensors, std::ssize(model_of(form)));
  }
}

}  // namespace draft_test
}  // namespace mckpt::impl
