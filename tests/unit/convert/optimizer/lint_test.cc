// Each remark by one planted fault in a healthy optimizer, with the parameters that it names; and healthy optimizers,
// of the kinds that runs have on purpose, of which nothing is remarked.
#include "convert/optimizer/lint.h"

#include <gtest/gtest.h>

#include <functional>

#include "convert/optimizer/content.h"
#include "convert/optimizer/remarks.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace optimizer_lint_test {

using Content = OptimizerContent;

Content::Group group(std::string name, Content::Options options, i64 optimizer = 0) {
  Content::Group out;
  out.name = std::move(name), out.options = std::move(options), out.optimizer = optimizer;
  return out;
}

Content::Parameter parameter(std::string name, std::vector<i64> dims, i64 of_group) {
  Content::Parameter out;
  out.name = std::move(name), out.dims = std::move(dims), out.has_dims = true, out.in_model = true;
  out.group = of_group, out.states = {"exp_avg", "exp_avg_sq"};
  return out;
}

// A Megatron run of three layers with two experts each: matrices decay, vectors do not, experts have groups of their own.
Content healthy() {
  const Content::Options all = {
      {"lr", "0.2"},    {"max_lr", "0.3"}, {"min_lr", "0.01"}, {"betas", "(0.9, 0.95)"},
      {"eps", "1e-08"}, {"step", "7"},     {"lr_mult", "1"}};
  auto with = [&](const char* mult, const char* decay, const char* experts) {
    Content::Options out = all;
    out["wd_mult"] = mult, out["weight_decay"] = decay, out["is_expert_parallel"] = experts;
    return out;
  };
  Content out;
  out.lists = out.scheduled = out.model = true;
  out.groups = {group("group 0", with("1", "0.1", "False")), group("group 1", with("0", "0", "False")),
                group("group 2", with("1", "0.1", "True"))};
  out.parameters.push_back(parameter("embedding.word_embeddings.weight", {40, 12}, 0));
  for (int layer = 0; layer < 3; layer++) {
    const std::string front = cat("decoder.layers.", layer, ".");
    out.parameters.push_back(parameter(cat(front, "self_attention.linear_qkv.weight"), {36, 12}, 0));
    out.parameters.push_back(parameter(cat(front, "self_attention.linear_qkv.bias"), {36}, 1));
    out.parameters.push_back(parameter(cat(front, "pre_mlp_layernorm.weight"), {12}, 1));
    for (int expert = 0; expert < 2; expert++)
      out.parameters.push_back(parameter(cat(front, "mlp.experts.linear_fc1.weight", expert), {28, 12}, 2));
  }
  out.parameters.push_back(parameter("decoder.final_layernorm.weight", {12}, 1));
  return out;
}

Content::Parameter& named(Content& content, std::string_view name) {
  return *std::ranges::find(content.parameters, name, &Content::Parameter::name);
}

constexpr const char* kNorm = "decoder.layers.1.pre_mlp_layernorm.weight";
constexpr const char* kMatrix = "decoder.layers.1.self_attention.linear_qkv.weight";
constexpr const char* kExpert = "decoder.layers.2.mlp.experts.linear_fc1.weight1";

struct Planted {
  const char* what;
  std::function<void(Content&)> plant;
  const char* tensor;  // of the one finding
  Code code;
  const char* words;
};

// A group for one parameter, with one option of its own.
void give(Content& content, const char* name, const char* option, const char* value) {
  Content::Parameter& p = named(content, name);
  Content::Group own = content.groups[p.group];
  own.name = cat("group ", content.groups.size());
  own.options[option] = value;
  p.group = std::ssize(content.groups);
  content.groups.push_back(std::move(own));
}

const Planted kPlanted[] = {
    {"a norm that decays", [](Content& c) { named(c, kNorm).group = 0; }, kNorm, Code::kImplausible,
     "1 of 7 norms and biases decays (group 0, weight_decay 0.1), unlike the others"},
    {"a matrix that does not", [](Content& c) { named(c, kMatrix).group = 1; }, kMatrix, Code::kImplausible,
     "1 of 10 matrices does not decay"},
    {"wd_mult 0 beside a decay", [](Content& c) { c.groups[1].options["weight_decay"] = "0.1"; }, "",
     Code::kImplausible, "group 1 has wd_mult 0 and weight_decay 0.1"},
    {"an expert in a dense group", [](Content& c) { named(c, kExpert).group = 0; }, kExpert,
     Code::kImplausible, "1 of 6 expert parameters is outside the groups of experts"},
    {"a matrix among experts", [](Content& c) { named(c, kMatrix).group = 2; }, kMatrix, Code::kImplausible,
     "1 parameter is in a group of experts and is not an expert"},
    {"a learning rate alone", [](Content& c) { give(c, kMatrix, "lr", "0.5"); }, kMatrix, Code::kImplausible,
     "lr is 0.5 for this parameter alone, and 0.2 for the other"},
    {"betas alone", [](Content& c) { give(c, kNorm, "betas", "(0.8, 0.95)"); }, kNorm, Code::kImplausible,
     "betas is (0.8, 0.95) for this parameter alone"},
    {"a step alone", [](Content& c) { named(c, kNorm).step = "3"; }, kNorm, Code::kImplausible,
     "step is 3 for 1 parameter, and 7 for the other"},
    {"no states", [](Content& c) { named(c, kMatrix).states.clear(); }, kMatrix, Code::kCounterpart,
     "parameters of groups has no states"},
    {"a moment that is lost", [](Content& c) { named(c, kMatrix).states = {"exp_avg"}; }, kMatrix,
     Code::kCounterpart, "lacks a state that others have"},
    {"states of nothing",
     [](Content& c) {
       c.parameters.push_back(parameter("decoder.layers.9.input_layernorm.weight", {12}, 1));
       c.parameters.back().in_model = false;
     },
     "decoder.layers.9.input_layernorm.weight", Code::kCounterpart,
     "states of 1 parameter that the model does not have"},
    {"states that no group lists", [](Content& c) { named(c, kNorm).group = -1; }, kNorm, Code::kCounterpart,
     "states of 1 parameter that no group lists"},
};

TEST(OptimizerLint, FindsEachPlantedFaultAndNamesItsParameter) {
  for (const Planted& planted : kPlanted) {
    Content content = healthy();
    planted.plant(content);
    const std::vector<Finding> found = lint(content);
    ASSERT_EQ(found.size(), 1u) << planted.what << ": " << (found.size() > 1 ? found[1].message : "nothing");
    EXPECT_EQ(found[0].tensor, planted.tensor) << planted.what;
    EXPECT_EQ(found[0].code, planted.code) << planted.what;
    EXPECT_TRUE(found[0].warning) << planted.what;
    EXPECT_NE(found[0].message.find(planted.words), std::string::npos)
        << planted.what << ": " << found[0].message;
  }
}

TEST(OptimizerLint, RemarksNothingOfHealthyRuns) {
  EXPECT_TRUE(lint(Content()).empty());
  EXPECT_TRUE(lint(healthy()).empty());

  Content one = healthy();  // everything decays, as torch's own optimizers have it
  for (Content::Group& g : one.groups) g.options.erase("wd_mult"), g.options["weight_decay"] = "0.1";
  EXPECT_TRUE(lint(one).empty());

  Content end = healthy();  // a learning rate of the embedding
  give(end, "embedding.word_embeddings.weight", "lr", "0.9");
  end.groups.back().options["is_decoupled_lr"] = "True";
  EXPECT_TRUE(lint(end).empty());

  Content frozen = healthy();  // a tower that is not trained
  for (int i = 0; i < 3; i++) {
    frozen.parameters.push_back(parameter(cat("vision_model.layers.", i, ".weight"), {8, 8}, -1));
    frozen.parameters.back().states.clear();
  }
  EXPECT_TRUE(lint(frozen).empty());

  Content first = healthy();  // before the first step there are no states
  for (Content::Parameter& p : first.parameters) p.states.clear();
  EXPECT_TRUE(lint(first).empty());

  Content copies = healthy();  // --apply-wd-to-qk-layernorm
  for (int layer = 0; layer < 3; layer++)
    copies.parameters.push_back(
        parameter(cat("decoder.layers.", layer, ".self_attention.q_layernorm.weight"), {6}, 0));
  EXPECT_TRUE(lint(copies).empty());
}

TEST(OptimizerLint, RemarksOptimizersThatMixExperts) {
  Content content = healthy();
  content.lists = false;
  content.groups = {group("group 0 of optimizer 0", {{"is_expert_parallel", "False"}}, 0),
                    group("group 1 of optimizer 0", {{"is_expert_parallel", "False"}}, 0),
                    group("group 0 of optimizer 1", {{"is_expert_parallel", "True"}}, 1),
                    group("group 1 of optimizer 1", {{"is_expert_parallel", "True"}}, 1)};
  for (Content::Parameter& p : content.parameters) p.group = -1;
  EXPECT_TRUE(lint(content).empty());
  content.groups[3].options["is_expert_parallel"] = "False";
  std::vector<Finding> found = lint(content);
  ASSERT_EQ(found.size(), 1u);  // about one of the two, which are as many
  EXPECT_NE(found[0].message.find("unlike the other 1 group of the same optimizer"), std::string::npos)
      << found[0].message;
  content.groups[2].options["is_expert_parallel"] = "False";
  found = lint(content);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(
      found[0].message.find(
          "none of 4 groups in 2 optimizers is marked as of experts, and the save has 6 expert parameters"),
      std::string::npos)
      << found[0].message;
}

TEST(OptimizerLint, CountsWhatIsMoreThanItNames) {
  Content content = healthy();
  for (int i = 0; i < 9; i++) {
    content.parameters.push_back(
        parameter(cat("decoder.layers.", 10 + i, ".mlp.linear_fc2.weight"), {12, 14}, 0));
    content.parameters.back().states.clear();
  }
  const std::vector<Finding> found = lint(content);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].tensor, "decoder.layers.10.mlp.linear_fc2.weight");
  EXPECT_NE(found[0].message.find("9 of 26 parameters of groups have no states"), std::string::npos)
      << found[0].message;
  EXPECT_NE(found[0].message.find("decoder.layers.13.mlp.linear_fc2.weight"), std::string::npos)
      << found[0].message;
  EXPECT_EQ(found[0].message.find("decoder.layers.14."), std::string::npos) << found[0].message;
}

TEST(OptimizerRemarks, KnowKindsByNameAndShape) {
  EXPECT_TRUE(is_vector(parameter("a.weight", {12}, 0)));
  EXPECT_TRUE(is_vector(parameter("a.bias", {12, 1}, 0)));
  EXPECT_FALSE(is_vector(parameter("a.weight", {12, 1}, 0)));
  EXPECT_TRUE(is_expert(parameter(kExpert, {28, 12}, 0)));
  EXPECT_FALSE(is_expert(parameter("mlp.shared_experts.linear_fc1.weight", {28, 12}, 0)));
  EXPECT_EQ(class_of(parameter(kExpert, {28, 12}, 0)),
            class_of(parameter("decoder.layers.10.mlp.experts.linear_fc1.weight0", {28, 12}, 0)));
  EXPECT_NE(class_of(parameter("number 3", {28, 12}, 0)), class_of(parameter("number 3", {12, 28}, 0)));
  EXPECT_EQ(number_of("0.25"), 0.25);
  EXPECT_FALSE(number_of("(0.9, 0.95)"));
  EXPECT_FALSE(number_of(""));
}

}  // namespace optimizer_lint_test
}  // namespace mckpt::impl
