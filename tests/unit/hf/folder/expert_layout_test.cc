// How fused experts are told apart: [experts, out, in] of transformers 5 and [experts, in, out] of released
// Qwen3-VL models, which some Qwen3.5 models have too. Where one of the two tensors of a layer is square the
// other one decides; nothing is guessed.
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "hf/folder/expert_layout.h"
#include "mappings/family.h"
#include "mappings/model/parameter.h"
#include "tests/support/golden_config.h"
#include "tests/support/tensor_list.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace expert_layout_test {

constexpr i64 kHidden = 96;
const std::string kGateUp = "mlp.experts.gate_up_proj", kDown = "mlp.experts.down_proj";

std::string tensor_name(i64 layer, const std::string& leaf) {
  return cat("model.language_model.layers.", layer, ".", leaf);
}

// A model with experts of such a width: half of the hidden size makes gate_up square, all of it down.
HfConfig config_of(i64 width, const char* model = "qwen3_vl_moe") {
  HfConfig c = golden_config(model);
  c.model.moe.ffn = width;
  return c;
}

TensorList tensors_as(const HfConfig& c, Needs form) {
  MapOptions options;
  options.expert_form = form;
  return TensorList(ModelMap::promised(c.model, *c.family, options), options);
}

// The rules by which the experts of all layers are read, each once: "gated_expert expert_row".
std::string rules_of(const HfConfig& c, const TensorList& tensors, MapOptions options = {}) {
  ModelMap map(c.model, *c.family, tensors.table(), options);
  std::set<std::string> rules;
  for (const ModelParameter& p : golden_parameters(map, {}, 0))
    if (p.expert()) rules.insert(std::string(p.row->rule));
  std::string out;
  for (const std::string& rule : rules) out += cat(out.empty() ? "" : " ", rule);
  return out;
}

TEST(ExpertLayout, IsToldByTheTensorThatIsNotSquare) {
  for (const char* model : {"qwen3_vl_moe", "qwen3_5_moe"})
    for (i64 width : {kHidden / 2, kHidden, i64{40}}) {
      HfConfig c = config_of(width, model);
      EXPECT_EQ(c.model.text.hidden, kHidden) << model;
      EXPECT_EQ(rules_of(c, tensors_as(c, Needs::kExpertsFused)), "expert_row gated_expert") << width;
      EXPECT_EQ(rules_of(c, tensors_as(c, Needs::kExpertsHub)),
                "expert_row_transposed gated_expert_transposed")
          << width;
      EXPECT_EQ(rules_of(c, tensors_as(c, Needs::kExpertsApart)), "gated_mlp row") << width;
    }
}

// Every item of a square tensor that is stored input first: row r of an expert's fc1 is column r of its
// slice.
TEST(ExpertLayout, ReadsASquareTensorTheRightWayRound) {
  HfConfig c = config_of(kHidden / 2);
  for (Needs form : {Needs::kExpertsFused, Needs::kExpertsHub}) {
    TensorList tensors = tensors_as(c, form);
    ModelMap map(c.model, *c.family, tensors.table());
    i64 seen = 0;
    for (const ModelParameter& p : golden_parameters(map, {}, 0)) {
      if (p.global_name != "language_model.decoder.layers.1.mlp.experts.linear_fc1.weight3") continue;
      std::vector<i64> items;
      for (const ItemRun& run : p.holding->runs)
        for (i64 i = 0; i < run.items(); i++) items.push_back(run.at(i));
      for (i64 row = 0; row < kHidden; row++)
        for (i64 column = 0; column < kHidden; column++, seen++) {
          bool hub = form == Needs::kExpertsHub;
          i64 item = (3 * kHidden + (hub ? column : row)) * kHidden + (hub ? row : column);
          ASSERT_EQ(items[static_cast<std::size_t>(row * kHidden + column)], item) << row << " " << column;
        }
    }
    EXPECT_EQ(seen, kHidden * kHidden);
  }
}

TEST(ExpertLayout, IsRefusedWhereLayersDisagreeAndTheFlagNamesTheOthers) {
  HfConfig c = config_of(kHidden / 2);
  TensorList tensors = tensors_as(c, Needs::kExpertsFused);
  tensors[tensor_name(1, kDown)].dims = {16, kHidden / 2, kHidden};  // layer 1 is transposed
  EXPECT_EQ(thrown_by([&] { rules_of(c, tensors); }), "MC2008 experts are stored in two forms at once");
  MapOptions fused;
  fused.expert_form = Needs::kExpertsFused;
  EXPECT_EQ(thrown_by([&] { rules_of(c, tensors, fused); }),
            "MC2005 the tensors and the model do not match: 1 wrong shape");
}

TEST(ExpertLayout, IsRefusedWhereExpertsAreApartAndFused) {
  HfConfig c = config_of(40);
  TensorList tensors = tensors_as(c, Needs::kExpertsFused);
  tensors.add(tensor_name(0, "mlp.experts.0.down_proj.weight"), {kHidden, 40});
  EXPECT_EQ(thrown_by([&] { rules_of(c, tensors); }), "MC2008 experts are stored in two forms at once");
}

// A family without the transposed form: what is turned round fits in one tensor and not in the other.
TEST(ExpertLayout, IsNotTakenForAnotherInFamiliesThatHaveOne) {
  for (const char* model : {"qwen3_next", "gpt_oss"}) {
    HfConfig c = golden_config(model);
    bool gpt = c.family->name == "gpt_oss";
    for (i64 width : {c.model.text.hidden / 2, c.model.text.hidden}) {
      c.model.moe.ffn = width;
      TensorList tensors = tensors_as(c, Needs::kExpertsFused);
      EXPECT_EQ(rules_of(c, tensors).find("interleaved") != std::string::npos, gpt);
      tensors.each([](const std::string& name, TensorList::Tensor& t) {
        if (name.ends_with("experts.gate_up_proj") || name.ends_with("experts.down_proj"))
          std::swap(t.dims[1], t.dims[2]);
      });
      EXPECT_EQ(thrown_by([&] { rules_of(c, tensors); }).substr(0, 6), "MC2005") << model << " " << width;
    }
  }
}

}  // namespace expert_layout_test
}  // namespace mckpt::impl
