#include "mckpt/diff.h"

#include <gtest/gtest.h>

#include <cstring>

#include "mckpt/c.h"
#include "mckpt/conversion.h"
#include "tests/support/temp_folder.h"

namespace mckpt {
namespace api_diff_test {

const std::string kModel = MCKPT_TEST_DATA "/models/tiny_qwen3_moe";

// A safetensors file with one tensor.
std::string two_floats(float first, float second, const std::string& name = "w") {
  std::string header = "{\"" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::uint64_t length = header.size();
  float values[] = {first, second};
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(reinterpret_cast<const char*>(values), sizeof values);
}

TEST(ApiDiff, CountsItemsAndNamesTheFirst) {
  impl::TempFolder t;
  Diff d = diff(t.put("a.safetensors", two_floats(1, 2)), t.put("b.safetensors", two_floats(1, 4)));
  EXPECT_FALSE(d.equal);
  EXPECT_EQ(d.tensors, 1);
  ASSERT_EQ(d.rows.size(), 1u);
  const DiffRow& row = d.rows[0];
  EXPECT_EQ(row.kind + " " + row.name + " " + row.at + " " + row.a + " " + row.b, "values w [1] 2 4");
  EXPECT_EQ(row.items, 1);
  EXPECT_EQ(row.largest, 2.0);
  EXPECT_TRUE(d.findings.empty());
}

TEST(ApiDiff, FormatsAndGridsOfOneModelAreEqual) {
  impl::TempFolder t;
  plan(ToFsdp{.source = kModel, .target = t.path() + "/ckpt", .grid = {.tp = 2, .ep = 2}}, 2).run();
  for (const Diff& d : {diff(t.path() + "/ckpt", kModel, {.threads = 2}), diff(kModel, t.path() + "/ckpt")}) {
    EXPECT_TRUE(d.equal);
    EXPECT_EQ(d.tensors, 45);
    EXPECT_EQ(d.compared,
              "each tensor of the Hugging Face model with the one that exporting the checkpoint would write");
  }
}

TEST(ApiDiff, IsTheSameInC) {
  impl::TempFolder t;
  std::string a = t.put("a.safetensors", two_floats(1, 2)), b = t.put("b.safetensors", two_floats(1, 2, "v"));
  mckpt_error* error = nullptr;
  mckpt_difference* d = mckpt_diff(a.c_str(), b.c_str(), nullptr, nullptr, &error);
  ASSERT_TRUE(d);
  EXPECT_EQ(mckpt_diff_equal(d), 0);
  ASSERT_EQ(mckpt_diff_row_count(d), 2);
  mckpt_diff_row row = mckpt_diff_row_at(d, 1);
  EXPECT_STREQ(row.kind, "only_b");
  EXPECT_STREQ(row.name, "v");
  EXPECT_STREQ(row.a, "");
  EXPECT_STREQ(row.b, "float32 [2]");
  EXPECT_EQ(row.items, -1);
  EXPECT_EQ(row.largest, -1);
  char* json = mckpt_diff_json(d, &error);
  ASSERT_TRUE(json);
  EXPECT_TRUE(std::strstr(json, "\"compared\": \"tensors of the same names\"")) << json;
  mckpt_text_free(json);
  mckpt_diff_free(d);
  mckpt_diff_free(nullptr);
  EXPECT_FALSE(mckpt_diff(a.c_str(), nullptr, nullptr, nullptr, &error));
  EXPECT_EQ(mckpt_error_status(error), 2);
  mckpt_error_free(error);
}

}  // namespace api_diff_test
}  // namespace mckpt
