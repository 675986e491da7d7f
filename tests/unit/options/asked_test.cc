// Words of options as values of the engine.
#include "convert/asked/words.h"

#include <gtest/gtest.h>

#include "convert/asked/plan.h"
#include "convert/dialects/torch_dist/plan.h"
#include "convert/plan/conversion.h"
#include "convert/run/run.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

std::string refused(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage);
    return cat(e.message(), "; ", e.expected());
  }
  return "(not refused)";
}

TEST(AskedWords, TypesAreReadAsAllSpellThem) {
  for (const char* word : {"bf16", "bfloat16", "torch.bfloat16"})
    EXPECT_EQ(value_type(word, "dtype"), DType::kBF16);
  EXPECT_EQ(value_type("fp32", "dtype"), DType::kF32);
  EXPECT_FALSE(value_type_or_kept("keep"));
  const std::string text = refused([] { value_type("int8", "dtype", "keep, "); });
  EXPECT_NE(text.find("`dtype`"), text.npos) << text;
  EXPECT_NE(text.find("keep, bf16, fp16 or fp32"), text.npos) << text;
}

TEST(AskedWords, AGridWithoutDpHasTheSmallest) {
  mckpt::Grid g;
  g.tp = 2, g.ep = 4;
  EXPECT_EQ(grid_of(g).dp, 2);
  EXPECT_EQ(chosen_dp_note(g), "dp=2 chosen, the smallest that works: 4 ranks in all");
  g.dp = 4;
  EXPECT_EQ(grid_of(g).dp, 4);
  EXPECT_EQ(chosen_dp_note(g), "");
  g.hsdp_outer = "both";
  EXPECT_NE(refused([&] { sizes_of(g); }).find("`hsdp_outer`"), std::string::npos);
}

TEST(AskedWords, AnEmptyNameOfADictIsRefusedAndNoneIsNot) {
  EXPECT_EQ(model_dict_of(std::nullopt), "");
  EXPECT_EQ(model_dict_of("actor"), "actor");
  EXPECT_NE(refused([] { model_dict_of(""); }).find("not empty"), std::string::npos);
}

TEST(AskedWords, DamageIsAcceptedByItsCode) {
  EXPECT_EQ(accepted_codes({"MC1311"}).size(), 1u);
  EXPECT_NE(refused([] { accepted_codes({"MC0001"}); }).find("`accept`"), std::string::npos);
}

TEST(AskedWords, ListsMayHaveCommas) {
  mckpt::Fsdp fsdp;
  fsdp.freeze = {"none,*.bias"};
  EXPECT_EQ(frozen_of(fsdp).text(), FrozenNames({"none", "*.bias"}).text());
}

TEST(AskedPlan, AWrongWordIsRefusedBeforeFilesAreOpened) {
  EXPECT_NE(refused([] {
              plan_asked(ToHf{.source = "/nowhere", .target = "out", .dtype = "fp8"}, {});
            }).find("`dtype`"),
            std::string::npos);
  EXPECT_NE(refused([] { plan_asked(Quantize{.source = "/nowhere", .target = "out"}, {}); }).find("`scheme`"),
            std::string::npos);
}

TEST(AskedPlan, OptionsOfTheRunAreThoseOfTheEngine) {
  mckpt::RunOptions given;
  given.threads = 3, given.max_memory = 5, given.sync = false, given.overwrite = true;
  const RunOptions run = run_options(given);
  EXPECT_EQ(run.threads, 3);
  EXPECT_EQ(run.memory_bytes, 5);
  EXPECT_FALSE(run.durable || run.resume || run.allow_overflow);
  EXPECT_TRUE(run.overwrite);
}

}  // namespace
}  // namespace mckpt::impl
