// Stacks as FSDP units, against the classes of modules by name: the outermost module of a unit class owns.
#include "mappings/model/stacks.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "core/fsdp/strategy.h"
#include "core/hybrid/pattern.h"
#include "mappings/fsdp/groups.h"
#include "mappings/fsdp/setup.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace stacks_test {

// nemotron_h_moe, ME*ME, with an MTP depth of two layers.
HfConfig hybrid_with_mtp() {
  std::string text = golden_config_text("nemotron_h_moe"), none = "\"num_nextn_predict_layers\": 0";
  return read_hf_config(text.replace(text.find(none) + none.size() - 1, 1, "1"));
}

using Rule = std::pair<const char*, const char*>;  // of modules by name: their class

// The class of a module of the model, as Megatron builds it.
std::string class_of(const std::string& module, std::span<const Rule> rules) {
  for (const auto& [name, of] : rules)
    if (std::regex_match(module, std::regex(name))) return of;
  return "";
}

// By parameter: the outermost module around it that is of a unit class; "": none.
std::vector<std::string> owners(const std::vector<ModelParameter>& parameters, std::span<const Rule> rules,
                                const std::set<std::string>& units) {
  std::vector<std::string> out;
  for (const ModelParameter& p : parameters) {
    std::string owner;
    for (std::size_t dot = p.name.find('.'); dot != p.name.npos && owner.empty();
         dot = p.name.find('.', dot + 1))
      if (units.contains(class_of(p.name.substr(0, dot), rules))) owner = p.name.substr(0, dot);
    out.push_back(owner);
  }
  return out;
}

// The members with equal units are those with one owner.
void expect_owned(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup,
                  const std::vector<std::string>& want) {
  std::map<i64, std::string> owner_of;
  std::map<std::string, i64> unit_of;
  for (const GroupMember& m : members_of(parameters, setup)) {
    const std::string& owner = want[static_cast<std::size_t>(m.parameter)];
    EXPECT_EQ(m.unit == kNoUnit, owner.empty()) << parameters[static_cast<std::size_t>(m.parameter)].name;
    EXPECT_EQ(owner_of.try_emplace(m.unit, owner).first->second, owner);
    EXPECT_EQ(unit_of.try_emplace(owner, m.unit).first->second, m.unit);
  }
}

constexpr Rule kFlat[] = {{"decoder", "HybridStack"},
                          {"mtp\\.layers\\.\\d+\\.mtp_model_layer", "HybridStack"},
                          {"decoder\\.layers\\.(0|3)", "MambaLayer"},
                          {"decoder\\.layers\\.\\d+", "TransformerLayer"},
                          {"mtp\\.layers\\.\\d+\\.mtp_model_layer\\.layers\\.\\d+", "TransformerLayer"}};
// [ME][*M]E: Megatron leaves the outer stack and the stacks of MTP depths out, so they are of no unit class
// here.
constexpr Rule kGrouped[] = {{"decoder\\.layers\\.(0|1)", "HybridStack"},
                             {"decoder\\.layers\\.(0\\.layers\\.0|1\\.layers\\.1)", "MambaLayer"},
                             {"decoder\\.layers\\.(\\d+\\.layers\\.\\d+|2)", "TransformerLayer"},
                             {"mtp\\.layers\\.\\d+\\.mtp_model_layer\\.layers\\.\\d+", "TransformerLayer"}};

TEST(StackUnits, AreTheOutermostModulesOfTheirClass) {
  HfConfig config = hybrid_with_mtp();
  ModelMap map = ModelMap::promised(config.model, *config.family);
  LayerPattern pattern = parse_pattern("[ME][*M]E/*E", Dialect::kGrouped);
  for (const LayerPattern* groups : {static_cast<const LayerPattern*>(nullptr), &std::as_const(pattern)}) {
    std::span<const Rule> rules = groups ? std::span<const Rule>(kGrouped) : kFlat;
    std::vector<ModelParameter> parameters = map.parameters(Grid{}, Cell{}, {0, DType::kBF16, groups});
    for (bool transformer : {false, true})
      for (bool mamba : {false, true})
        for (bool stacks : {false, true}) {
          std::set<std::string> units;
          if (transformer) units.insert("TransformerLayer");
          if (mamba) units.insert("MambaLayer");
          if (stacks) units.insert("HybridStack");
          expect_owned(parameters,
                       {.transformer_units = transformer, .mamba_units = mamba, .hybrid_stack_units = stacks},
                       owners(parameters, rules, units));
        }
  }
}

TEST(StackUnits, HaveTheFinalNormOfAPatternWithoutGroups) {
  ModelMap map = golden_map("nemotron_h");
  LayerPattern bare = parse_pattern("M-M*-", Dialect::kGrouped),
               grouped = parse_pattern("[M-]M*-", Dialect::kGrouped);
  auto in_stack = [&](const LayerPattern* groups) {
    i64 count = 0;
    bool flat = !groups || !groups->has_groups();
    for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, {0, DType::kBF16, groups})) {
      count += p.stack >= 0;
      EXPECT_EQ(p.stack >= 0 && p.unit < 0, flat && p.name == "decoder.final_norm.weight");
    }
    return count;
  };
  EXPECT_EQ(in_stack(nullptr), map.parameter_count() - 2);  // embedding, output layer
  EXPECT_EQ(in_stack(&bare), in_stack(nullptr));
  EXPECT_EQ(in_stack(&grouped), 12);
}

TEST(StackUnits, AreRefusedForAModelWithoutStacks) {
  ModelMap map = golden_map("qwen3_next");
  std::vector<ModelParameter> parameters = map.parameters(Grid{}, Cell{}, {0, DType::kBF16});
  EXPECT_EQ(thrown_by([&] { members_of(parameters, {}); }), "nothing");
  EXPECT_NE(thrown_by([&] { members_of(parameters, {.hybrid_stack_units = true}); }).find("no HybridStack"),
            std::string::npos);
}

}  // namespace stacks_test
}  // namespace mckpt::impl
