// Saves of several dicts, as training programs nest them, and the dict that is the model's.
#include "convert/own/model_dict.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/made_store.h"

namespace mckpt::impl {
namespace model_dict_test {

// "model.|bert.pooler.w" is a tensor with this name in the dict of this front.
struct Save {
  TempFolder folder;
  std::vector<std::string> fronts;
  std::vector<NamedTensor> names;
  std::unique_ptr<Store> store;

  explicit Save(const std::vector<std::string>& entries) {
    std::vector<MadeTensor> tensors;
    for (const std::string& e : entries) {
      std::size_t bar = e.find('|'), rows = e.find(' ');
      fronts.push_back(e.substr(0, bar));
      std::string name = cat(fronts.back(), e.substr(bar + 1, rows - bar - 1));
      names.push_back({std::ssize(names), name});
      // "w 0" is a tensor without dimensions, "w 3" one of three items; others have two.
      i64 items = rows == e.npos ? 2 : e[rows + 1] - '0';
      tensors.push_back({name, items == 0 ? std::vector<i64>{} : std::vector<i64>{items}});
    }
    store = made_store(folder, tensors);
  }

  // "model." for the front of the model; "? actor. critic." where the structure does not decide.
  std::string model(const ExpectedTensors& expected = {}) const {
    std::vector<std::string_view> dicts(fronts.begin(), fronts.end());
    ModelDict m = model_dict(*store, names, dicts, expected);
    if (m.known) return m.front;
    std::string out = "?";
    for (const std::string& c : m.candidates) out += cat(" ", c.empty() ? "-" : c);
    return out;
  }
};

TEST(ModelDict, IsFoundByTheStructureOfTheSave) {
  const struct {
    const char* what;
    std::vector<std::string> save;
    std::string expected;
  } kCases[] = {
      {"a model that no table knows", {"model.|bert.pooler.w"}, "model."},
      {"the model alone keeps the first part of its names", {"|model.embed.w", "|model.norm.w"}, ""},
      {"a model in a dict, with names that begin alike", {"model.|model.embed.w"}, "model."},
      {"a model in a dict, with other tensors and dicts beside it",
       {"model.|model.embed.w", "|loss 0", "|tokens 3", "opt.state.|a 3", "cuda_rng.|0 9", "ema.|decay 0"},
       "model."},
      {"keys without dots, in a dict that is named model", {"model.|w", "model.|b", "loss.|c"}, "model."},
      {"keys without dots, in no such dict", {"net.|w", "net.|b"}, "?"},
      {"any name, if it is alone", {"net.|layers.0.w", "|lr 0"}, "net."},
      {"not if a head without modules is beside it", {"body.|layers.0.w", "head.|w"}, "? body. head."},
      {"the average of the model", {"ema.|h.0.w", "model.|h.0.w"}, "model."},
      {"the average, inside of another dict", {"ema.model.|h.0.w", "model.|h.0.w"}, "model."},
      {"the same, a dict further in", {"state.ema.|h.0.w", "state.model.|h.0.w"}, "state.model."},
      {"two models", {"actor.|h.0.w", "critic.|h.0.w"}, "? actor. critic."},
      {"two whole models with names of models",
       {"model.|h.0.w", "module.|h.0._orig_mod.w"},
       "? model. module."},
      {"another thing with the name of a model", {"model.|h.0.w", "module.|h.0.w 3"}, "model."},
      {"a part with the name of a model", {"model.|h.0.w", "model.|h.1.w", "module.|h.1.w"}, "model."},
      {"two, each named model in a dict",
       {"actor.model.|h.0.w", "critic.model.|h.0.w"},
       "? actor.model. critic.model."},
      {"NeMo-RL, with a model of values",
       {"policy.weights.|h.0.w", "value.weights.|h.0.w"},
       "policy.weights."},
      {"a key with a slash", {"policy/weights.|h.0.w"}, "policy/weights."},
      {"an optimizer of unknown name, flattened", {"|h.0.w", "opt.|state.h.0.w.exp_avg"}, ""},
      {"a dict inside of the model's", {"model.|h.0.w", "model.more.|w"}, "model."},
  };
  for (const auto& c : kCases) EXPECT_EQ(Save(c.save).model(), c.expected) << c.what;
}

TEST(ModelDict, IsTheOneWithTheTensorsOfTheFolder) {
  using Dims = std::vector<i64>;
  const ExpectedTensors expected = {{"h.0.w", Dims{3}}, {"h.1.w", std::nullopt}, {"lm_head.weight", Dims{7}}};
  const struct {
    const char* what;
    std::vector<std::string> save;
    std::string expected;
  } kCases[] = {
      {"by names", {"actor.|h.0.w 3", "actor.|h.1.w", "critic.|h.0.w 3"}, "actor."},
      {"by shapes", {"actor.|h.0.w 2", "actor.|h.1.w", "critic.|h.0.w 3", "critic.|h.1.w"}, "critic."},
      {"behind wrappers", {"a.|module.h.0._orig_mod.w 3", "a.|module.h.1.w", "b.|module.h.0.w 3"}, "a."},
      {"not against the name", {"model.|other.w", "net.|h.0.w 3", "net.|h.1.w"}, "model."},
      {"not the reference of a model with another vocabulary",
       {"model.|h.0.w 5", "model.|h.1.w", "ref.|h.0.w 3", "ref.|h.1.w"},
       "model."},
      {"if both have them, the name",
       {"ema.|h.0.w 3", "ema.|h.1.w", "model.|h.0.w 3", "model.|h.1.w"},
       "model."},
      {"if both have them, and names of models",
       {"model.|h.0.w 3", "model.|h.1.w", "state_dict.|h.0.w 3", "state_dict.|h.1.w"},
       "? model. state_dict."},
      {"not the other name beside a model with another vocabulary",
       {"model.|h.0.w 5", "model.|h.1.w", "module.|h.0.w 3", "module.|h.1.w"},
       "model."},
      {"if both have them, and no name", {"a.|h.0.w 3", "a.|h.1.w", "b.|h.0.w 3", "b.|h.1.w"}, "? a. b."},
      {"experts are stacked in memory", {"a.|h.0.w 3", "a.|h.1.w", "b.|h.0.w 3"}, "a."},
  };
  ExpectedTensors with_experts = expected;
  with_experts.emplace("h.1.experts.0.up_proj.weight", Dims{4});
  for (const auto& c : kCases) {
    EXPECT_EQ(Save(c.save).model(expected), c.expected) << c.what;
    EXPECT_EQ(Save(c.save).model(with_experts), c.expected) << c.what;
  }
}

}  // namespace model_dict_test
}  // namespace mckpt::impl
