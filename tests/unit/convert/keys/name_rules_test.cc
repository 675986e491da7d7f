// Rules by names: the last one that matches counts, and one that decides nothing is refused.
#include "convert/keys/name_rules.h"

#include <gtest/gtest.h>

#include "convert/keys/value_options.h"
#include "mappings/model/parameter.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

TEST(DtypeRules, GiveTheTypeOfTheLastThatMatches) {
  DtypeRules rules;
  EXPECT_TRUE(rules.empty());
  rules.add("*.weight", DType::kF32);
  rules.add("a.*", DType::kBF16);
  EXPECT_EQ(rules.of("a.weight"), DType::kBF16);
  EXPECT_EQ(rules.of("b.weight"), DType::kF32);
  EXPECT_EQ(rules.of("b.bias"), std::nullopt);
  const std::string_view names[] = {"b.weight"};
  EXPECT_EQ(thrown_by([&] { rules.refuse_unmatched(1, [&](i64 i) { return names[i]; }); }),
            "MC1007 `dtype_rule`: no name matches: found a.*");
}

TEST(DtypeRules, AreRefusedWhereALaterOneDecidesAboutAllTheyMatch) {
  const std::string_view names[] = {"a.weight", "b.weight"};
  auto refusal = [&](std::vector<std::pair<std::string, DType>> list) {
    DtypeRules rules;
    for (auto& [glob, type] : list) rules.add(glob, type);
    return thrown_by([&] { rules.refuse_unmatched(2, [&](i64 i) { return names[i]; }); });
  };
  const std::string idle =
      "MC1007 `dtype_rule`: a later rule decides about every name that this rule matches: found ";
  EXPECT_EQ(refusal({{"*", DType::kF16}, {"a.*", DType::kF32}}), "nothing");
  EXPECT_EQ(refusal({{"a.*", DType::kF32}, {"*", DType::kF16}}), idle + "a.*=float32");
  EXPECT_EQ(refusal({{"a.*", DType::kF32}, {"a.*", DType::kF16}}), idle + "a.*=float32");
  EXPECT_EQ(refusal({{"*", DType::kBF16}, {"a.*", DType::kF32}, {"b.*", DType::kF16}}), "nothing");
  EXPECT_EQ(refusal({{"*", DType::kBF16}, {"c.*", DType::kF32}}),
            "MC1007 `dtype_rule`: no name matches: found c.*");
}

std::vector<ModelParameter> two_parameters() {
  std::vector<ModelParameter> parameters(2);
  parameters[0].global_name = "a.weight", parameters[1].global_name = "b.weight";
  parameters[1].trainable = false;  // as a family freezes it
  return parameters;
}

TEST(FrozenNames, AddToWhatTheFamilyFreezesUnlessNoneComesFirst) {
  auto trained = [](std::vector<std::string> globs) {
    std::vector<ModelParameter> parameters = two_parameters();
    FrozenNames(std::move(globs)).apply(parameters);
    return std::pair(parameters[0].trainable, parameters[1].trainable);
  };
  EXPECT_EQ(trained({}), std::pair(true, false));
  EXPECT_EQ(trained({"a.*"}), std::pair(false, false));
  EXPECT_EQ(trained({"none"}), std::pair(true, true));
  EXPECT_EQ(trained({"none", "a.*"}), std::pair(false, true));
  EXPECT_TRUE(FrozenNames().empty());
  EXPECT_FALSE(FrozenNames({"none"}).empty());
  FrozenNames({"none"}).refuse_unmatched(two_parameters());
  EXPECT_EQ(thrown_by([] { FrozenNames({"c.*"}).refuse_unmatched(two_parameters()); }),
            "MC1007 `freeze`: no name matches: found c.*");
}

TEST(UnitModules, OwnAParameterByTheInnermostThatMatches) {
  std::vector<ModelParameter> parameters(6);
  const char* names[] = {"norm",        "blocks.0.scale", "blocks.0.lin.weight", "blocks.1.lin.weight",
                         "head.weight", "blocks.0.cube"};
  for (std::size_t i = 0; i < parameters.size(); i++) parameters[i].global_name = names[i];
  UnitModules({"blocks.*", "*.lin", "head"}).apply(parameters);
  std::vector<i64> units;
  for (const ModelParameter& p : parameters) units.push_back(p.unit);
  EXPECT_EQ(units, (std::vector<i64>{-1, 0, 1, 2, 3, 0}));
  EXPECT_EQ(parameters[0].unit_class, UnitClass::kNone);
  EXPECT_NE(parameters[1].unit_class, UnitClass::kNone);
  UnitModules({"blocks.?"}).refuse_unmatched(parameters);
  EXPECT_EQ(thrown_by([&] { UnitModules({"norm"}).refuse_unmatched(parameters); }),  // a parameter, no module
            "MC1007 `fsdp_module`: no name matches: found norm");
}

TEST(ParamsDtype, IsTheSourcesTheConfigsOrTheOneThatIsGiven) {
  ModelConfig model;
  EXPECT_EQ(ParamsDtype{}.of(model), std::nullopt);
  EXPECT_EQ(ParamsDtype{ParamsDtype::kConfig}.of(model), DType::kF32);
  model.dtype = DType::kBF16;
  EXPECT_EQ(ParamsDtype{ParamsDtype::kConfig}.of(model), DType::kBF16);
  EXPECT_EQ((ParamsDtype{ParamsDtype::kGiven, DType::kF16}.of(model)), DType::kF16);
}

}  // namespace
}  // namespace mckpt::impl
