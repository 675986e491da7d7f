// Settings of the C interface: which are taken, and what the errors about others say.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mckpt/c.h"

namespace mckpt {
namespace api_settings_test {

const std::string kModel = MCKPT_TEST_DATA "/models/tiny_qwen3_moe";

struct Told {
  int status = 0;
  std::string text, help;
};

// Plans with these settings behind source and target; the error, or status 0.
Told planned(const char* kind, std::vector<std::string> settings, bool ends = true) {
  if (ends) settings.insert(settings.begin(), {"source=" + kModel, "target=/tmp/there_is_no_such_target"});
  std::vector<const char*> list;
  for (const std::string& s : settings) list.push_back(s.c_str());
  list.push_back(nullptr);
  mckpt_error* error = nullptr;
  mckpt_conversion* c = mckpt_plan(kind, list.data(), &error);
  Told told;
  if (c) mckpt_conversion_free(c);
  if (!error) return told;
  told.status = mckpt_error_status(error), told.text = mckpt_error_text(error),
  told.help = mckpt_error_help(error);
  mckpt_error_free(error);
  return told;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ApiSettings, AreTakenByName) {
  EXPECT_EQ(planned("fsdp", {"tp=2", "strategy=optim", "dtype_rule=*router*=fp32", "freeze=*embedding*",
                             "freeze=*router*"})
                .text,
            "");
  EXPECT_EQ(planned("fsdp", {"threads=3", "transformer_units=0"}).text, "");
}

TEST(ApiSettings, RefuseAValueThatIsNotOfTheFieldsType) {
  for (const auto& [setting, words] : std::vector<std::pair<std::string, std::string>>{
           {"tp=two", "the value of `tp` is not allowed"},
           {"tp=2x", "the value of `tp` is not allowed"},
           {"tp=99999999999999999999", "the value of `tp` is not allowed"},
           {"any_model=yes", "the value of `any_model` is not allowed"},
           {"dtype_rule=fp32", "the value of `dtype_rule` is not allowed"},
           {"units_for=some", "the value of `units_for` is not allowed"},
           {"strategy=zero3", "there is no such sharding strategy"}}) {
    const Told told = planned("fsdp", {setting});
    EXPECT_EQ(told.status, 2) << setting;
    EXPECT_TRUE(has(told.text, words)) << told.text;
  }
  EXPECT_TRUE(has(planned("fsdp", {"tp=two"}).text, "expected a whole number, found two"));
  EXPECT_TRUE(has(planned("fsdp", {"any_model=yes"}).text, "expected 0 or 1, found yes"));
  EXPECT_TRUE(has(planned("fsdp", {"units_for=some"}).text, "expected full or sharded, found some"));
  EXPECT_TRUE(has(planned("fsdp", {"strategy=zero3"}).text,
                  "expected no_shard, optim, optim_grads or optim_grads_params"));
}

TEST(ApiSettings, RefuseTwoValuesOfWhatHasOne) {
  const Told told = planned("fsdp", {"tp=2", "tp=4"});
  EXPECT_EQ(told.status, 2);
  EXPECT_TRUE(has(told.text, "`tp` has one value, and several are given")) << told.text;
  EXPECT_TRUE(has(told.text, "2 and 4")) << told.text;
}

TEST(ApiSettings, RefuseATextWithoutAValue) {
  EXPECT_TRUE(has(planned("fsdp", {"tp"}).text, "a setting has no value"));
}

TEST(ApiSettings, NeedSourceAndTarget) {
  EXPECT_TRUE(has(planned("fsdp", {"source=" + kModel}, false).text, "needs the settings source and target"));
}

TEST(ApiSettings, RefuseUnknownNamesWithTheNearest) {
  EXPECT_EQ(planned("fsdp", {"strategi=optim"}).help, "did you mean `strategy`?");
  EXPECT_EQ(planned("fsdp", {"nothing_like_it=1"}).help, "");
  EXPECT_TRUE(has(planned("fsdp", {"nothing_like_it=1"}).text, "there is no setting `nothing_like_it` here"));
}

TEST(ApiSettings, OfTheRunAreGivenToTheRun) {
  EXPECT_EQ(planned("fsdp", {"overwrite=1"}).help,
            "`overwrite` is a setting of the run: give it when the planned conversion is run");
  EXPECT_EQ(planned("fsdp", {"overwrit=1"}).help, "did you mean `overwrite`?");
}

// A kind takes the fields that it reads, and no others of its struct.
TEST(ApiSettings, OfAnotherKindAreRefused) {
  EXPECT_TRUE(has(planned("mcore", {"hsdp=2"}).text, "there is no setting `hsdp` here"));
  EXPECT_EQ(planned("mcore", {"layers=stacked"}).text, "");
  EXPECT_TRUE(has(planned("gpt-to-hybrid", {"layers=stacked"}).text, "there is no setting `layers` here"));
  EXPECT_TRUE(has(planned("quantize", {"base=" + kModel}).text, "there is no setting `base` here"));
}

TEST(ApiSettings, SpellingsAreThoseOfTheKind) {
  EXPECT_TRUE(has(planned("mcore", {"spelling=dots"}).text,
                  "expected submodule-conv, unfused-norms or usual, found"));
  EXPECT_TRUE(has(planned("ranks", {"spelling=dots"}).text,
                  "expected submodule-conv, unfused-norms, usual or mtp-transformer-layer"));
}

TEST(ApiSettings, KindsAreWordsOfBothDoors) {
  const Told told = planned("gguf", {});
  EXPECT_EQ(told.status, 2);
  EXPECT_TRUE(has(told.text, "there is no such kind of conversion")) << told.text;
  EXPECT_TRUE(has(told.text, "hdf5 or from-hdf5")) << told.text;
  EXPECT_EQ(planned("fdsp", {}).help, "did you mean `fsdp`?");
}

}  // namespace api_settings_test
}  // namespace mckpt
