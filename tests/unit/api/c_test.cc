#include "mckpt/c.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/temp_folder.h"

namespace mckpt {
namespace api_c_test {

const std::string kModel = MCKPT_TEST_DATA "/models/tiny_qwen3_moe";

// The text of the error that fn stores, and its status; frees it.
template <typename Fn>
std::string error_text(Fn&& fn, int status) {
  mckpt_error* error = nullptr;
  fn(&error);
  if (!error) return "no error";
  EXPECT_EQ(mckpt_error_status(error), status);
  std::string text = mckpt_error_text(error) + std::string(" | ") + mckpt_error_help(error);
  mckpt_error_free(error);
  return text;
}

TEST(ApiC, ListsAndReads) {
  mckpt_error* error = nullptr;
  mckpt_checkpoint* c = mckpt_open(kModel.c_str(), nullptr, &error);
  ASSERT_TRUE(c);
  EXPECT_EQ(mckpt_tensor_count(c), 45);
  EXPECT_STREQ(mckpt_tensor_at(c, 0).name, "lm_head.weight");
  mckpt_tensor last = mckpt_tensor_at(c, 44);
  EXPECT_STREQ(last.name, "model.norm.weight");
  ASSERT_EQ(last.rank, 1u);
  EXPECT_EQ(last.shape[0], 16);
  EXPECT_EQ(mckpt_read_bytes(c, last.name, "[2:5]", &error), 6);
  std::uint16_t values[3];
  EXPECT_EQ(mckpt_read(c, last.name, "[2:5]", values, 6, &error), 0);
  EXPECT_EQ(values[0], 0x3f4f);  // 0.80859375
  EXPECT_EQ(error_text([&](mckpt_error** e) { mckpt_read_bytes(c, "w", nullptr, e); }, 1).find("no error"),
            std::string::npos);
  EXPECT_EQ(mckpt_read(c, last.name, "[2:5]", values, 5, nullptr), 2);
  mckpt_checkpoint_free(c);
  mckpt_checkpoint_free(nullptr);
}

TEST(ApiC, TakesSettingsByName) {
  impl::TempFolder t;
  std::string source = "source=" + kModel, target = "target=" + t.path() + "/ckpt";
  const char* settings[] = {source.c_str(), target.c_str(), "tp=4", "tp=2", "dtype_rule=*router*=fp32",
                            "threads=2",    nullptr};
  mckpt_error* error = nullptr;
  mckpt_conversion* c = mckpt_plan("to-fsdp", settings, &error);
  ASSERT_TRUE(c) << mckpt_error_text(error);
  EXPECT_EQ(mckpt_conversion_number(c, "tensors_in"), -1);
  ASSERT_EQ(mckpt_prove(c, 2, nullptr, &error), 0);
  EXPECT_EQ(mckpt_conversion_number(c, "tensors_in"), 45);
  EXPECT_EQ(mckpt_conversion_number(c, "changed"), 2);  // the routers of two layers
  ASSERT_EQ(mckpt_run(c, nullptr, nullptr, &error), 0);
  EXPECT_EQ(mckpt_conversion_number(c, "bytes_read"), 7408 * 2);
  EXPECT_EQ(mckpt_conversion_number(c, "no such number"), -1);
  std::string made = mckpt_conversion_path(c);
  mckpt_conversion_free(c);

  std::string against = "against=" + kModel;
  const char* compared[] = {against.c_str(), nullptr};
  mckpt_report* report = mckpt_verify(made.c_str(), compared, nullptr, &error);
  ASSERT_TRUE(report) << mckpt_error_text(error);
  EXPECT_EQ(mckpt_report_sound(report), 1);
  EXPECT_EQ(mckpt_report_equal(report), 1);
  mckpt_report_free(report);
}

TEST(ApiC, ReportsFindingsAsLines) {
  impl::TempFolder t;
  std::string file = t.put("model.safetensors", "not a safetensors file at all");
  mckpt_report* report = mckpt_verify(file.c_str(), nullptr, nullptr, nullptr);
  ASSERT_TRUE(report);
  EXPECT_EQ(mckpt_report_sound(report), 0);
  EXPECT_EQ(mckpt_report_equal(report), -1);
  ASSERT_EQ(mckpt_report_finding_count(report), 1u);
  EXPECT_EQ(std::string(mckpt_report_finding(report, 0)).substr(0, 10), "problem[MC");
  mckpt_report_free(report);
}

TEST(ApiC, RefusesSettingsThatDoNotExist) {
  auto planned = [](const char* kind, std::vector<const char*> settings, int status) {
    settings.push_back(nullptr);
    return error_text([&](mckpt_error** e) { mckpt_conversion_free(mckpt_plan(kind, settings.data(), e)); },
                      status);
  };
  EXPECT_NE(
      planned("to-fsdp", {"source=a", "target=b", "strategi=optim"}, 2).find("did you mean `strategy`?"),
      std::string::npos);
  EXPECT_NE(planned("to-fsdp", {"source=a", "target=b", "tp=two"}, 2).find("`tp`"), std::string::npos);
  EXPECT_NE(planned("reshard", {"source=a", "target=b", "any_model=yes"}, 2).find("0 or 1"),
            std::string::npos);
  EXPECT_NE(planned("to-hf", {"source"}, 2).find("name=value"), std::string::npos);
  EXPECT_NE(planned("to-hf", {"source=a"}, 2).find("settings source and target"), std::string::npos);
  EXPECT_NE(error_text([](mckpt_error** e) { mckpt_open(nullptr, nullptr, e); }, 2).find("null pointer"),
            std::string::npos);
  const char* without_against[] = {"params_dtype=bf16", nullptr};
  EXPECT_NE(error_text([&](mckpt_error** e) { mckpt_verify(kModel.c_str(), without_against, nullptr, e); }, 2)
                .find("`params_dtype`"),
            std::string::npos);
  EXPECT_NE(planned("to-gguf", {}, 2).find("to-safetensors"), std::string::npos);
  EXPECT_NE(planned("group", {"source=/nowhere", "target=b", "pattern=[*-]"}, 3).find("/nowhere"),
            std::string::npos);
}

}  // namespace api_c_test
}  // namespace mckpt
