// Saves of nested dicts by torch (test_data/saved_dicts): which names the model's tensors have, in the dict
// that was saved.
#include "convert/own/saved_dicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "convert/compare/verify.h"
#include "convert/own/names.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "hf/folder/tied_names.h"
#include "tests/support/made_store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace saved_dicts_test {

const std::string kData = std::string(MCKPT_TEST_DATA) + "/saved_dicts/";

// "model. | cls.bias=200 | loss": the section, each name with its first value, and what is beside the model.
std::string model_of(const char* name, const ExpectedTensors& expected = {}, const std::string& dict = "",
                     bool if_there = false) {
  OwnNamesOptions options;
  options.expected = expected;
  options.model_dict = dict, options.dict_if_there = if_there;
  OwnNames own = own_names(open_store(kData + name), options);
  std::vector<std::string> tensors;
  for (i64 t = 0; t < own.store->tensor_count(); t++) {
    StoreFiles files(*own.store);
    float first = -1;
    TensorReader(*own.store, files).read(t, [&](std::span<const u8> bytes, i64) {
      if (first < 0) std::memcpy(&first, bytes.data(), sizeof first);
    });
    tensors.push_back(cat(own.store->name(t), "=", static_cast<int>(first)));
  }
  std::ranges::sort(tensors);
  std::ranges::sort(own.beside);
  std::string out = cat(own.section, " |");
  for (const std::string& t : tensors) out += cat(" ", t);
  out += " |";
  for (const std::string& b : own.beside) out += cat(" ", b);
  return out;
}

TEST(SavedDicts, SayWhichTensorsAreTheModel) {
  const std::string expected =
      "model. | bert.embeddings.weight=0 bert.pooler.dense.bias=100 cls.bias=200 | cuda_rng.0 "
      "ema.bert.embeddings.weight ema.bert.pooler.dense.bias ema.cls.bias loss opt.state.a";
  EXPECT_EQ(model_of("model_and_more"), expected);
  EXPECT_EQ(model_of("model_and_more.pt"), expected);
  EXPECT_EQ(model_of("model_alone"),
            " | model.bert.embeddings.weight=0 model.bert.pooler.dense.bias=100 model.cls.bias=200 |");
}

// In the dict of the model the names of schedulers, counters and optimizers are names of modules.
TEST(SavedDicts, EverythingInTheDictOfTheModelIsTheModels) {
  EXPECT_EQ(
      model_of("words.pt"),
      "model. | a.w=500 b.w=500 c.w=500 d.w=0 e.w=0 extra_state=300 optim.state.exp_avg=200 rng.table=100 "
      "scheduler.w=0 step=400 | scheduler.w step");
}

TEST(SavedDicts, StoreTensorsThatAreOneOnce) {
  OwnNames own = own_names(open_store(kData + "words.pt"), {});
  auto share = [&](const char* one, const char* other) {
    return share_storage(*own.store, find_tensor(*own.store, one), find_tensor(*own.store, other));
  };
  EXPECT_TRUE(share("a.w", "b.w"));
  EXPECT_FALSE(share("a.w", "c.w"));
  EXPECT_FALSE(share("d.w", "e.w"));
  EXPECT_FALSE(share("a.w", "step"));
}

TEST(SavedDicts, OfTwoModelsTheFolderChoosesOne) {
  std::string told = thrown_by([] { model_of("two_models.pt"); });
  EXPECT_EQ(told.substr(0, 6), "MC2005") << told;
  EXPECT_NE(told.find("several dicts"), told.npos) << told;
  EXPECT_NE(told.find("actor, critic"), told.npos) << told;
  const ExpectedTensors folder = {{"bert.embeddings.weight", std::vector<i64>{2}},
                                  {"bert.pooler.dense.bias", std::nullopt},
                                  {"cls.bias", std::vector<i64>{8}}};
  EXPECT_EQ(model_of("two_models.pt", folder),
            "actor. | bert.embeddings.weight=0 bert.pooler.dense.bias=100 cls.bias=200 | "
            "critic.bert.embeddings.weight critic.bert.pooler.dense.bias");
}

TEST(SavedDicts, TheCallerNamesTheDict) {
  const std::string critic =
      "critic. | bert.embeddings.weight=1000 bert.pooler.dense.bias=1100 | actor.bert.embeddings.weight "
      "actor.bert.pooler.dense.bias actor.cls.bias";
  EXPECT_EQ(model_of("two_models.pt", {}, "critic"), critic);
  EXPECT_EQ(model_of("two_models.pt", {}, "critic."), critic);
  const std::string average = model_of("model_and_more", {}, "ema");
  EXPECT_EQ(average.substr(0, average.find(" |", 6)),
            "ema. | bert.embeddings.weight=1000 bert.pooler.dense.bias=1100 cls.bias=1200");
  const std::string unknown = thrown_by([] { model_of("two_models.pt", {}, "crit"); });
  EXPECT_EQ(unknown.substr(0, 6), "MC2005") << unknown;
  EXPECT_NE(unknown.find("actor, critic"), unknown.npos) << unknown;
  // One side of a comparison need not have it.
  EXPECT_EQ(model_of("model_alone", {}, "critic", true), model_of("model_alone"));
}

// "model." was found, whatever was named: a part of its name, or a dict that only the other side has.
TEST(SavedDicts, ADictThatIsFoundIsNotTheOneThatWasNamed) {
  auto taken = [](const char* name, const char* dict) {
    OwnNamesOptions options;
    options.model_dict = dict, options.dict_if_there = true;
    OwnNames own = own_names(open_store(kData + name), options);
    bool has_fact = false;
    for (const auto& fact : own.store->facts()) has_fact |= fact.first == kModelDictFact;
    EXPECT_EQ(has_fact, own.dict_taken) << name << " " << dict;
    return own.dict_taken;
  };
  EXPECT_TRUE(taken("two_models.pt", "critic"));
  EXPECT_TRUE(taken("model_and_more", "ema"));
  EXPECT_TRUE(taken("model_and_more", "model"));
  EXPECT_FALSE(taken("model_and_more", "mod"));
  EXPECT_FALSE(taken("model_and_more", "model_ema"));
  EXPECT_FALSE(taken("model_alone", "critic"));
  EXPECT_FALSE(taken("model_alone", ""));
}

TEST(SavedDicts, AComparisonNeedsTheDictThatIsNamed) {
  auto compared = [](const char* dict) {
    Observer observer;
    VerifyOptions options;
    options.against = kData + "model_and_more.pt";
    options.compare.model_dict = dict;
    return thrown_by([&] { verify(kData + "model_and_more", options, observer); });
  };
  EXPECT_EQ(compared("model"), "nothing");
  EXPECT_EQ(compared("ema"), "nothing");
  const std::string part = compared("mod");
  EXPECT_EQ(part.substr(0, 6), "MC2005") << part;
  EXPECT_NE(part.find("neither side"), part.npos) << part;
}

TEST(SavedDicts, AreTheKeysInFrontOfEachName) {
  std::unique_ptr<Store> store = open_store(kData + "model_and_more");
  std::vector<std::string_view> dicts = saved_dicts(*store);
  ASSERT_EQ(std::ssize(dicts), store->tensor_count());
  std::map<std::string_view, std::string_view> by_name;
  for (i64 t = 0; t < store->tensor_count(); t++) by_name[store->name(t)] = dicts[t];
  EXPECT_EQ(by_name["model.bert.pooler.dense.bias"], "model.");
  EXPECT_EQ(by_name["opt.state.a"], "opt.state.");
  EXPECT_EQ(by_name["cuda_rng.0"], "cuda_rng.");
  EXPECT_EQ(by_name["loss"], "");
}

}  // namespace saved_dicts_test
}  // namespace mckpt::impl
