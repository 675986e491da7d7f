// torchtitan's names of every version, and the order of rows, which is compared with a naive permutation for
// all ways in which the source may be cut.
#include "convert/own/titan_names.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "convert/own/names.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "hf/config/json.h"
#include "mappings/family.h"
#include "mappings/registry.h"
#include "tests/support/made_store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace titan_names_test {

HfConfig config_of(const char* family, i64 heads, i64 groups, i64 head_dim, i64 layers = 2) {
  HfConfig out;
  out.model.model_type = family;
  out.family = &family_of_model(family, "");
  out.model.text.heads = heads, out.model.text.kv_groups = groups, out.model.text.head_dim = head_dim;
  out.model.text.layers.resize(static_cast<std::size_t>(layers));
  return out;
}

constexpr i64 kColumns = 3;

// The items of rows in this order.
std::vector<i64> items_of(const std::vector<i64>& rows, i64 first) {
  std::vector<i64> out;
  for (i64 row : rows)
    for (i64 c = 0; c < kColumns; c++) out.push_back(first + row * kColumns + c);
  return out;
}

// Rows of heads that begin at `heads`; row 2 i + j of a head becomes its row j * d / 2 + i.
std::vector<i64> halves(const std::vector<i64>& heads, i64 d) {
  std::vector<i64> out;
  for (i64 head : heads)
    for (i64 j = 0; j < 2; j++)
      for (i64 i = 0; i < d / 2; i++) out.push_back(head + 2 * i + j);
  return out;
}

class TitanNames : public testing::Test {
 protected:
  OwnNames own(const std::vector<MadeTensor>& tensors, const HfConfig* config) {
    std::vector<MadeTensor> all = {{"tok_embeddings.weight", {2, kColumns}}};
    all.insert(all.end(), tensors.begin(), tensors.end());
    return own_names(made_store(folder_, all), {config});
  }
  std::vector<i64> values(const OwnNames& own, const std::string& name) {
    i64 t = find_tensor(*own.store, name);
    EXPECT_GE(t, 0) << name;
    return t < 0 ? std::vector<i64>() : values_of(*own.store, t);
  }
  // The names of what the tensors become, with the numbers of those beside; or what is thrown.
  std::string names(const std::vector<std::string>& titan, const HfConfig* config) {
    std::vector<MadeTensor> tensors;
    for (const std::string& name : titan) tensors.push_back({name, {4, 2, kColumns}});
    std::string out;
    std::string told = thrown_by([&] {
      OwnNames view = own(tensors, config);
      for (i64 t = 1; t < view.store->tensor_count(); t++) out += cat(t > 1 ? " " : "", view.store->name(t));
      for (const std::string& name : view.beside) out += cat(" -", name);
    });
    return told == "nothing" ? out : told;
  }

  TempFolder folder_;
};

TEST_F(TitanNames, LlamaTurnsPairsOfRows) {
  HfConfig llama = config_of("llama", 3, 1, 4);
  const i64 first = 2 * kColumns;  // behind the embedding
  for (i64 cut = 0; cut <= 12; cut++)
    for (i64 other = cut; other <= 12; other++) {
      OwnNames view = own({{"layers.0.attention.wq.weight", {12, kColumns}, first, {cut, other}},
                           {"layers.0.attention.qkv_linear.wk.weight", {4, kColumns}},
                           {"layers.0.attention.qkv_linear.wv.weight", {4, kColumns}}},
                          &llama);
      ASSERT_EQ(values(view, "model.layers.0.self_attn.q_proj.weight"), items_of(halves({0, 4, 8}, 4), first))
          << cut << " " << other;
      EXPECT_EQ(values(view, "model.layers.0.self_attn.k_proj.weight"), items_of(halves({0}, 4), first + 36));
      EXPECT_EQ(values(view, "model.layers.0.self_attn.v_proj.weight"), items_of({0, 1, 2, 3}, first + 48));
    }
}

// Four heads and two groups of two rows: q q k v | q q k v.
TEST_F(TitanNames, FusedQueriesKeysAndValuesAreTakenApart) {
  const i64 first = 2 * kColumns;
  const std::string front = "model.layers.1.self_attn.";
  for (const char* family : {"llama", "qwen3"}) {
    bool pairs = std::string(family) == "llama";
    HfConfig config = config_of(family, 4, 2, 4);
    auto rows = [&](const std::vector<i64>& heads, bool turned) {
      std::vector<i64> out;
      for (i64 head : heads)
        for (i64 r = 0; r < 4; r++) out.push_back(head + r);
      return items_of(turned ? halves(heads, 4) : out, first);
    };
    for (i64 cut : {0, 5, 16, 31}) {
      OwnNames view =
          own({{"layers.1.attention.qkv_linear.wqkv.weight", {32, kColumns}, first, {cut}}}, &config);
      EXPECT_EQ(values(view, front + "q_proj.weight"), rows({0, 4, 16, 20}, pairs)) << family << cut;
      EXPECT_EQ(values(view, front + "k_proj.weight"), rows({8, 24}, pairs)) << family << cut;
      EXPECT_EQ(values(view, front + "v_proj.weight"), rows({12, 28}, false)) << family << cut;
    }
    // One group: q q q k v.
    HfConfig one = config_of(family, 3, 1, 4);
    OwnNames view = own({{"layers.1.attention.qkv_linear.wqkv.weight", {20, kColumns}, first}}, &one);
    EXPECT_EQ(values(view, front + "q_proj.weight"), rows({0, 4, 8}, pairs)) << family;
    EXPECT_EQ(values(view, front + "k_proj.weight"), rows({12}, pairs)) << family;
    EXPECT_EQ(values(view, front + "v_proj.weight"), rows({16}, false)) << family;
  }
}

TEST_F(TitanNames, AreKnownInAllVersions) {
  HfConfig moe = config_of("qwen3_moe", 2, 2, 4), deep = config_of("deepseek_v3", 2, 2, 4, 3);
  const std::string kExperts =
      "model.layers.5.mlp.experts.0.up_proj.weight model.layers.5.mlp.experts.1.up_proj.weight "
      "model.layers.5.mlp.experts.2.up_proj.weight model.layers.5.mlp.experts.3.up_proj.weight";
  for (const char* w3 : {"moe.experts.w3", "moe.experts.w3_EFD", "moe.routed_experts.inner_experts.w3_EFD"})
    EXPECT_EQ(names({cat("layers.5.", w3)}, &moe), kExperts);
  EXPECT_EQ(names({"output.weight"}, &moe), "lm_head.weight");
  EXPECT_EQ(names({"layers.0.attention.wq.weight"}, &moe), "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(names({"layers.0.attention.wq.weight"}, &deep), "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(names({"layers.0.moe.expert_bias", "freqs_cis", "layers.0.moe.tokens_per_expert"}, &deep),
            "model.layers.0.mlp.gate.e_score_correction_bias -freqs_cis -layers.0.moe.tokens_per_expert");
}

// [experts, in, out] is not read, and not taken for the other one where the names leave it open.
TEST_F(TitanNames, ExpertsThatMayBeTransposedAreRefused) {
  HfConfig moe = config_of("qwen3_moe", 2, 2, 4);
  auto code = [&](const char* name, std::vector<i64> dims) {
    return thrown_by([&] { own({{cat("layers.0.", name), dims}}, &moe); }).substr(0, 6);
  };
  EXPECT_EQ(code("moe.experts.w1", {2, 5, kColumns}), "nothin");
  EXPECT_EQ(code("moe.experts.w2", {2, kColumns, 5}), "nothin");
  EXPECT_EQ(code("moe.experts.w1", {2, kColumns, 5}), "MC2011");
  EXPECT_EQ(code("moe.experts.w2", {2, 5, kColumns}), "MC2011");
  EXPECT_EQ(code("moe.experts.w1", {2, kColumns, kColumns}), "MC2008");
  EXPECT_EQ(code("moe.experts.w1_EFD", {2, kColumns, kColumns}), "nothin");
}

// Layers that predict more than one token are behind the decoder's, of which the config has three.
TEST_F(TitanNames, LayersOfMtpAreBehindTheOthers) {
  HfConfig deep = config_of("deepseek_v3", 2, 2, 4, 3);
  std::vector<std::string> titan = {"layers.2.ffn_norm.weight", "mtp_layers.0.mtp_norm.weight",
                                    "mtp_layers.1.attention.wkv_a.weight"};
  std::string expected =
      "model.layers.2.post_attention_layernorm.weight model.layers.3.shared_head.norm.weight "
      "model.layers.4.self_attn.kv_a_proj_with_mqa.weight";
  EXPECT_EQ(names(titan, &deep), expected);
  EXPECT_EQ(names(titan, nullptr), expected);
}

TEST_F(TitanNames, WithoutAConfigAreThoseOfTheModelThatHasThem) {
  EXPECT_EQ(names({"layers.0.attention.q_norm.weight"}, nullptr), "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(
      names({"layers.0.attention.q_norm.weight", "layers.0.attention.wkv_a.weight"}, nullptr),
      "model.layers.0.self_attn.q_a_layernorm.weight model.layers.0.self_attn.kv_a_proj_with_mqa.weight");
  std::string told = names({"layers.0.attention.wq.weight"}, nullptr);
  EXPECT_EQ(told.substr(0, 6), "MC2014") << told;
}

TEST_F(TitanNames, ThatAreNotInTheTableAreRefusedTogether) {
  HfConfig llama = config_of("llama", 3, 1, 4), other = config_of("glm4", 3, 1, 4);
  std::string told =
      names({"layers.0.attention.q_norm.weight", "layers.x.ffn_norm.weight", "extra.weight"}, &llama);
  EXPECT_EQ(told.substr(0, 6), "MC2005") << told;
  EXPECT_EQ(names({"mtp_layers.0.enorm.weight"}, &llama).substr(0, 6), "MC2005");
  EXPECT_EQ(names({"norm.weight"}, &other).substr(0, 6), "MC2002");
  EXPECT_EQ(names({"output.weight", "lm_head.weight"}, &llama).substr(0, 6), "MC2005");
  EXPECT_EQ(names({"layers.0.attention.wq.weight"}, &llama).substr(0, 6), "MC2011");
}

// torchtitan's router has a bias for the load of experts; the folder of Qwen3-MoE has no place for it, and it
// may be more than zeros.
TEST_F(TitanNames, ABiasThatTheFolderHasNotIsBesideAndNamed) {
  HfConfig moe = config_of("qwen3_moe", 2, 2, 4);
  OwnNames view = own({{"layers.0.moe.expert_bias_E", {4}}, {"layers.0.moe.tokens_per_expert_E", {4}}}, &moe);
  EXPECT_EQ(view.store->tensor_count(), 1);
  EXPECT_EQ(std::ssize(view.beside), 2);
  EXPECT_EQ(view.floats_beside, std::vector<std::string>{"layers.0.moe.expert_bias_E"});
}

// Models that no table of configs reads.
OwnNamesOptions other_model(const char* model_type) {
  OwnNamesOptions how{.model_type = model_type};
  how.numbers = {.layers = 2,
                 .heads = 2,
                 .kv_heads = 1,
                 .head_dim = 4,
                 .vision_heads = 2,
                 .vision_hidden = 8,
                 .patch_side = 2,
                 .patch_frames = 3};
  return how;
}

TEST_F(TitanNames, TheTowerOfMuseGlimmerTurnsPairsOfRowsAndOfBiases) {
  auto made = [&] {
    return made_store(folder_, {{"tok_embeddings.embedding.weight", {2, kColumns}},
                                {"vision_encoder.layers.0.attn.wq.weight", {8, kColumns}, 0},
                                {"vision_encoder.layers.0.attn.wk.bias", {8}, 0, {3}},
                                {"layers.0.attention.qkv_linear.wk.weight", {4, kColumns}, 0}});
  };
  OwnNames view = own_names(made(), other_model("muse_glimmer"));
  EXPECT_EQ(view.convention, "torchtitan muse_glimmer");
  EXPECT_EQ(values(view, "model.vision_tower.layers.0.attn.q_proj.weight"), items_of(halves({0, 4}, 4), 0));
  EXPECT_EQ(values(view, "model.vision_tower.layers.0.attn.k_proj.bias"), halves({0, 4}, 4));
  EXPECT_EQ(values(view, "model.language_model.layers.0.self_attn.k_proj.weight"),
            items_of(halves({0}, 4), 0));
  EXPECT_EQ(thrown_by([&] { own_names(made(), {.model_type = "muse_glimmer"}); }).substr(0, 6), "MC2014");
}

TEST_F(TitanNames, PartsAreJoinedInTheOrderOfTheFolder) {
  auto joined = [&](std::vector<MadeTensor> parts) {
    parts.insert(parts.begin(), {"tok_embeddings.weight", {2, kColumns}});
    return own_names(made_store(folder_, parts), other_model("kimi_k25"));
  };
  const std::string front = "vision_encoder.layers.1.attn.";
  MadeTensor q{front + "wq.weight", {2, kColumns}, 0}, k{front + "wk.weight", {2, kColumns}, 6, {1}},
      v{front + "wv.weight", {3, kColumns}, 12};
  std::vector<i64> all(21);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(values(joined({v, q, k}), "vision_tower.encoder.blocks.1.wqkv.weight"), all);
  EXPECT_EQ(thrown_by([&] { joined({v, k}); }).substr(0, 6), "MC2005");
  v.dims = {3, 2};
  EXPECT_EQ(thrown_by([&] { joined({v, k, q}); }).substr(0, 6), "MC2011");
  OwnNames patches = joined({{"vision_encoder.patch_embed.weight", {2, 12}, 0}});
  const i64 t = find_tensor(*patches.store, "vision_tower.patch_embed.proj.weight");
  ASSERT_GE(t, 0);
  EXPECT_EQ(patches.store->shape(t), Shape({2, 3, 2, 2}));
  EXPECT_EQ(thrown_by([&] {
              joined({{"vision_encoder.patch_embed.weight", {2, 10}}});
            }).substr(0, 6),
            "MC2011");
}

// Two spellings of one tensor: which of the two is the model's nobody knows, and one would be lost.
TEST_F(TitanNames, TwoTensorsOfOnePlaceAreRefused) {
  HfConfig moe = config_of("qwen3_moe", 2, 2, 4);
  auto told = [&](bool stacks, const std::string& name, std::vector<i64> dims) {
    std::vector<MadeTensor> all = {{"tok_embeddings.weight", {2, kColumns}}};
    for (const char* front : {"layers.0.moe.experts.", "layers.0.moe.routed_experts.inner_experts."})
      for (const MadeTensor& t :
           {MadeTensor{"w1_EFD", {2, 2, kColumns}}, MadeTensor{"w3_EFD", {2, 2, kColumns}},
            MadeTensor{"w2_EDF", {2, kColumns, 2}}})
        if (front == std::string("layers.0.moe.experts.") || t.name == name)
          all.push_back({front + t.name, t.dims});
    EXPECT_EQ(dims, all.back().dims);
    return thrown_by([&] { own_names(made_store(folder_, all), {.config = &moe, .stacks = stacks}); });
  };
  for (bool stacks : {true, false})
    for (const auto& [name, dims] : std::map<std::string, std::vector<i64>>{
             {"w1_EFD", {2, 2, kColumns}}, {"w3_EFD", {2, 2, kColumns}}, {"w2_EDF", {2, kColumns, 2}}})
      EXPECT_EQ(told(stacks, name, dims).substr(0, 6), "MC2005") << stacks << name;
}

// A folder may have the experts of a layer as one tensor: gate rows above up rows.
TEST_F(TitanNames, ExpertsAreStacksWhereTheFolderHasThem) {
  HfConfig moe = config_of("qwen3_moe", 2, 2, 4);
  const std::string front = "layers.0.moe.routed_experts.inner_experts.";
  OwnNames view = own_names(made_store(folder_, {{"tok_embeddings.weight", {2, kColumns}},
                                                 {front + "w3_EFD", {2, 2, kColumns}, 12, {1}},
                                                 {front + "w1_EFD", {2, 2, kColumns}, 0},
                                                 {front + "w2_EDF", {2, kColumns, 2}, 0}}),
                            {.config = &moe, .stacks = true});
  EXPECT_EQ(values(view, "model.layers.0.mlp.experts.gate_up_proj"),
            (std::vector<i64>{0, 1, 2, 3, 4,  5,  12, 13, 14, 15, 16, 17,
                              6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(view.store->shape(find_tensor(*view.store, "model.layers.0.mlp.experts.gate_up_proj")),
            Shape({2, 4, kColumns}));
  EXPECT_GE(find_tensor(*view.store, "model.layers.0.mlp.experts.down_proj"), 0);
}

TEST_F(TitanNames, OfAModelThatNoTableHasAreRefused) {
  auto told = [&](const char* name, const char* model_type) {
    return thrown_by([&] {
             own_names(made_store(folder_, {{name, {2, kColumns}}}), {.model_type = model_type});
           })
        .substr(0, 6);
  };
  EXPECT_EQ(told("tok_embeddings.embedding.weight", "muse_other"), "MC2002");
  EXPECT_EQ(told("tok_embeddings.table.weight", "new_model"), "MC2002");
  EXPECT_EQ(told("double_blocks.0.img_attn.qkv.weight", ""), "MC2002");
}

}  // namespace titan_names_test
}  // namespace mckpt::impl
