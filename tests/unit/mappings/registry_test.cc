#include "mappings/registry.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/needs.h"
#include "mappings/shape_text.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace registry_test {

// "MC2009"
template <typename Fn>
std::string code_thrown(Fn&& fn) {
  return thrown_by(fn).substr(0, 6);
}

TEST(Registry, EveryTableIsSound) {
  for (const Family* family : all_families()) EXPECT_NO_THROW(check_family(*family)) << family->name;
}

TEST(Registry, FindsAFamilyByTheModelType) {
  EXPECT_EQ(family_of_model("qwen3_5_moe_text", "").name, "qwen3_5_moe_text");
  EXPECT_EQ(family_of_model("deepseek_v3", "DeepseekV3ForCausalLM").vocab_divisor, 1280);
}

TEST(Registry, FindsAFamilyByItsNameArchitectureOrModelType) {
  for (std::string_view name : {"deepseek_v3", "DeepseekV3ForCausalLM", "kimi_k2"})
    EXPECT_EQ(family_named(name).name, "deepseek_v3") << name;
  EXPECT_THROW(family_named("kimi_k3"), Error);
}

TEST(Registry, AnUnknownModelIsRefusedByItsTypeAndArchitecture) {
  try {
    family_of_model("qwen3_mo", "Qwen3MoForCausalLM");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnknownModel);
    EXPECT_NE(e.message().find("Qwen3MoForCausalLM"), std::string::npos);
    EXPECT_TRUE(e.notes().empty());  // the letters of a name say nothing
  }
}

TEST(Registry, NoModelTypeBelongsToTwoFamilies) {
  for (const Family* family : all_families())
    for (std::string_view type : family->model_types) EXPECT_EQ(&family_of_model(type, ""), family);
}

std::string fault_of(const Row& row,
                     Section section = {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}."}) {
  LayerRows layer{.attention = {&row, 1}};
  if (section.scope == Scope::kOnce)
    section.rows = {&row, 1};
  else
    section.layer = &layer;
  Family family{
      .name = "test", .model_types = {}, .architecture = "", .summary = "", .sections = {&section, 1}};
  try {
    check_family(family);
    return "";
  } catch (const Error& e) {
    return e.message();
  }
}

TEST(CheckFamily, AcceptsARowThatAgreesOnBothSides) {
  EXPECT_EQ(fault_of({"a.weight", "column", {{{"b.weight", "ffn hidden"}}}}), "");
  EXPECT_EQ(fault_of({"a.weight{E}", "column", {{{"b.{E}.weight", "ffn hidden"}}}}), "");
}

TEST(CheckFamily, RefusesRowsThatDoNot) {
  Section once{Scope::kOnce, "", "model."};
  struct Case {
    Row row;
    Section section;
    const char* fault;
  };
  Section layers{Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}."};
  Section numberless{Scope::kLayers, "decoder.layers.{L}.", "model.layers."};
  const Case cases[] = {
      {{"a", "columm", {{{"b", "ffn"}}}}, layers, "columm"},
      {{"a", "gated_mlp", {{{"b", "ffn"}}}}, layers, "takes 2 sources, not 1"},
      {{"a", "column", {{{"b", "fnn"}}}}, layers, "fnn"},
      {{"a{X}", "column", {{{"b", "ffn"}}}}, layers, "placeholder"},
      {{"a{M}", "column", {{{"b", "ffn"}}}}, layers, "{M} has no number here"},
      {{"a", "column", {{{"b{M}", "ffn"}}}}, layers, "{M} has no number here"},
      {{"a", "column", {{{"b", "ffn"}}}}, numberless, "lacks {L}"},
      {{"a{E}", "column", {{{"b", "ffn"}}}}, layers, "{E} is not on both sides"},
      {{"a", "column", {{{"b{E}", "ffn"}}}}, layers, "{E} is not on both sides"},
      {{"a{L}", "column", {{{"b", "ffn"}}}}, once, "{L} has no number here"},
  };
  for (const Case& c : cases)
    EXPECT_NE(fault_of(c.row, c.section).find(c.fault), std::string::npos) << fault_of(c.row, c.section);
}

TEST(CheckFamily, RefusesANameTwiceUnlessTheRowsExcludeEachOther) {
  Row rows[] = {{"a", "column", {{{"b", "ffn"}}}, Needs::kTied},
                {"a", "column", {{{"b", "ffn"}}}, Needs::kUntied}};
  LayerRows layer{.attention = rows};
  Section section{Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer};
  Family family{
      .name = "test", .model_types = {}, .architecture = "", .summary = "", .sections = {&section, 1}};
  EXPECT_NO_THROW(check_family(family));
  rows[1].needs = Needs::kQkNorm;
  EXPECT_EQ(code_thrown([&] { check_family(family); }), "MC2009");
  rows[1].megatron = "c";
  EXPECT_EQ(code_thrown([&] { check_family(family); }), "MC2009") << "the source is read twice";
}

TEST(ShapeText, ReadsWordsAndProducts) {
  ModelConfig m;
  m.text.hidden = 8;
  m.text.heads = 4;
  m.text.kv_groups = 2;
  m.text.head_dim = 3;
  m.text.output_gate = true;
  m.moe.experts = 5;
  m.moe.ffn = 6;
  EXPECT_EQ(to_string(shape_of("experts 2*expert_ffn hidden", m, m.text)), "[5, 12, 8]");
  EXPECT_EQ(to_string(shape_of("q hidden", m, m.text)), "[24, 8]");
  EXPECT_EQ(to_string(shape_of("kv 1", m, m.text)), "[6, 1]");
  EXPECT_EQ(code_thrown([&] { shape_of("experts q_lora", m, m.text); }), "MC2010");
  EXPECT_EQ(code_thrown([] { check_shape_text("hiden"); }), "MC2009");
}

TEST(Needs, NamesReadBack) {
  for (Needs n : {Needs::kAlways, Needs::kQkvBias, Needs::kNoQueryLora, Needs::kUntied, Needs::kExpertsHub})
    EXPECT_EQ(needs_from_name(needs_name(n)), n);
  EXPECT_EQ(code_thrown([] { needs_from_name("tide"); }), "MC2009");
}

}  // namespace registry_test
}  // namespace mckpt::impl
