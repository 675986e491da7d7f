// Tensors and parameters, one to one: what does not match is refused, all of it at once.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "mappings/model/parameter.h"
#include "tests/support/golden_config.h"
#include "tests/support/tensor_list.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace accounting_test {

struct Model {
  HfConfig config;
  TensorList tensors;

  explicit Model(const std::string& name)
      : config(golden_config(name)), tensors(ModelMap::promised(config.model, *config.family)) {}

  ModelMap map() const { return ModelMap(config.model, *config.family, tensors.table()); }
  std::string refusal() const {
    return thrown_by([&] { map(); });
  }
  std::vector<std::string> notes() const {
    try {
      map();
    } catch (const Error& e) {
      return e.notes();
    }
    return {};
  }
};

TEST(Accounting, AcceptsWhatTheConfigPromises) {
  for (const std::string& name : all_models()) {
    Model m(name);
    EXPECT_EQ(m.refusal(), "nothing") << name;
    EXPECT_GT(m.map().parameter_count(), 0) << name;
  }
}

TEST(Accounting, NamesEverythingThatDoesNotMatchAtOnce) {
  Model m("qwen3_moe");
  m.tensors.remove("model.layers.1.self_attn.k_proj.weight");
  m.tensors.remove("model.layers.2.mlp.experts.7.up_proj.weight");
  m.tensors.rename("model.norm.weight", "model.final_norm.weight");
  m.tensors["model.layers.0.mlp.gate.weight"].dims = {8, 96};
  m.tensors["model.layers.0.input_layernorm.weight"].dtype = DType::kI32;
  m.tensors["lm_head.weight"].dims = {516, 96, 1};
  EXPECT_EQ(
      m.refusal(),
      "MC2005 the tensors and the model do not match: 1 wrong type, 2 wrong shape, 3 missing, 1 unmatched");
  std::string all;
  for (const std::string& note : m.notes()) all += note + "\n";
  for (const char* part :
       {"missing: model.layers.1.self_attn.k_proj.weight, for "
        "decoder.layers.1.self_attention.linear_qkv.weight",
        "missing: model.layers.2.mlp.experts.7.up_proj.weight, for "
        "decoder.layers.2.mlp.experts.linear_fc1.weight7",
        "missing: model.norm.weight, for decoder.final_layernorm.weight",
        "unmatched: model.final_norm.weight is read by no parameter (unexpected)",
        "wrong shape: model.layers.0.mlp.gate.weight: expected [16, 96] (experts hidden), found [8, 96]",
        "wrong type: model.layers.0.input_layernorm.weight: a floating-point type is expected, not int32"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
}

TEST(Accounting, SaysHowManyMoreThereAre) {
  Model m("qwen3_moe");
  for (i64 e = 0; e < 16; e++)
    for (std::string_view leaf : {"gate_proj", "up_proj"})
      m.tensors.remove(cat("model.layers.0.mlp.experts.", std::to_string(e), ".", leaf, ".weight"));
  std::vector<std::string> notes = m.notes();
  ASSERT_EQ(notes.size(), 21u);
  EXPECT_EQ(notes.back(), "and 12 more");
}

// transformers writes them for n_shared_experts 0; a list of no items may be what a broken save left.
TEST(Accounting, LeavesMatricesWithoutItemsOut) {
  const std::string name = "model.layers.0.mlp.shared_experts.up_proj.weight";
  Model m("qwen3_moe");
  m.tensors.add(name, {0, 96});
  EXPECT_EQ(m.refusal(), "nothing");
  const ModelMap map = m.map();
  ASSERT_EQ(map.unread().size(), 1u);
  EXPECT_EQ(map.sources()[map.unread()[0].tensor].name, name);
  EXPECT_EQ(map.unread()[0].reason, "it has no items");
  for (const std::vector<i64>& dims : {std::vector<i64>{1, 96}, std::vector<i64>{0}}) {
    m.tensors.add(name, dims);
    EXPECT_EQ(m.refusal(), "MC2005 the tensors and the model do not match: 1 unmatched");
  }
  // A tensor that a parameter reads has its shape.
  m.tensors.remove(name);
  m.tensors["model.layers.0.mlp.gate.weight"].dims = {0, 96};
  EXPECT_EQ(m.refusal(), "MC2005 the tensors and the model do not match: 1 wrong shape");
}

TEST(Accounting, OneTypeAParameter) {
  Model m("qwen3_dense");
  m.tensors["model.layers.0.mlp.up_proj.weight"].dtype = DType::kF32;
  ModelMap map = m.map();
  EXPECT_EQ(
      thrown_by([&] { golden_parameters(map, {}, 0); }),
      "MC2005 tensor 'decoder.layers.0.mlp.linear_fc1.weight': the tensors of one parameter are of different "
      "types: expected bfloat16 as model.layers.0.mlp.gate_proj.weight, found float32 in "
      "model.layers.0.mlp.up_proj.weight");
}

TEST(Accounting, RefusesQuantisedWeights) {
  struct Case {
    const char *model, *tensor;
    DType dtype;
  };
  const Case cases[] = {
      {"deepseek_v3", "model.layers.0.self_attn.o_proj.weight_scale_inv", DType::kF32},
      {"gpt_oss", "model.layers.0.mlp.experts.gate_up_proj_blocks", DType::kU8},
      {"gpt_oss", "model.layers.0.mlp.experts.down_proj_scales", DType::kU8},
      {"llama3", "model.layers.0.mlp.up_proj.qweight", DType::kI32},
      {"llama3", "model.layers.0.mlp.up_proj.weight.absmax", DType::kF32},
      {"llama3", "model.layers.0.mlp.up_proj.weight_packed", DType::kU8},
      {"qwen3_moe", "model.layers.0.mlp.gate.weight", DType::kF8E4M3},  // it replaces the bf16 one
      {"qwen3_moe", "model.layers.0.mlp.gate.weight", DType::kF8E5M2},
  };
  for (const Case& c : cases) {
    Model m(c.model);
    m.tensors.add(c.tensor, {16, 96}, c.dtype);
    std::string refusal = m.refusal();
    EXPECT_EQ(refusal.substr(0, 6), "MC2004") << c.tensor;
    EXPECT_NE(refusal.find(c.tensor), std::string::npos) << refusal;
  }
}

TEST(Accounting, CopiesThatNobodyReadsAreKnownAndNothingElseIs) {
  Model m("deepseek_v3_mtp");
  auto embedding = m.tensors["model.embed_tokens.weight"].dims;
  m.tensors.add("model.layers.2.embed_tokens.weight", embedding);
  m.tensors.add("model.layers.2.shared_head.head.weight", embedding);
  ModelMap map = m.map();
  std::string unread;
  for (const UnreadTensor& u : map.unread())
    unread += cat(map.sources()[u.tensor].name, " of ", map.sources()[u.of].name, "; ");
  EXPECT_EQ(unread,
            "model.layers.2.embed_tokens.weight of model.embed_tokens.weight; "
            "model.layers.2.shared_head.head.weight of lm_head.weight; ");
  m.tensors.add("model.layers.1.embed_tokens.weight", embedding);  // no MTP layer
  EXPECT_EQ(m.refusal(), "MC2005 the tensors and the model do not match: 1 unmatched");
}

TEST(Accounting, TheFileTellsWhetherThereIsMtp) {
  Model m("qwen3_next_mtp");
  EXPECT_EQ(m.map().model().mtp.depths, 1);
  TensorList without = m.tensors;
  m.tensors.each([&](const std::string& name, TensorList::Tensor&) {
    if (name.starts_with("mtp.")) without.remove(name);
  });
  ModelMap map(m.config.model, *m.config.family, without.table());
  EXPECT_EQ(map.model().mtp.depths, 0);
  ASSERT_EQ(map.notes().size(), 1u);
  EXPECT_EQ(map.notes()[0], "the config has MTP layers (1), but the file has none");
  // Half of them is neither.
  m.tensors.remove("mtp.fc.weight");
  EXPECT_EQ(m.refusal(), "MC2005 the tensors and the model do not match: 1 missing");
  m.tensors.remove("mtp.pre_fc_norm_embedding.weight");
  EXPECT_EQ(m.refusal().substr(0, 6), "MC2005");
}

}  // namespace accounting_test
}  // namespace mckpt::impl
