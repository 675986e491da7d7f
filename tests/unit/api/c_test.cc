#include "mckpt/c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
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
  auto refused = [&](auto&& call) { return error_text([&](mckpt_error** e) { call(e); }, 2); };
  EXPECT_NE(refused([&](mckpt_error** e) {
              mckpt_read(c, last.name, "", nullptr, 32, e);
            }).find("the memory is a null pointer"),
            std::string::npos);
  EXPECT_NE(refused([&](mckpt_error** e) { mckpt_read(c, last.name, "", values, -4, e); }).find("negative"),
            std::string::npos);
  EXPECT_NE(refused([&](mckpt_error** e) { mckpt_matching(c, "*", nullptr, e); }).find("a null pointer"),
            std::string::npos);
  EXPECT_NE(refused([&](mckpt_error** e) { mckpt_tensor_table(c, nullptr, e); }).find("a null pointer"),
            std::string::npos);
  EXPECT_NE(refused([&](mckpt_error** e) {
              mckpt_tensor_stretch(c, last.name, nullptr, e);
            }).find("a null pointer"),
            std::string::npos);
  mckpt_checkpoint_free(c);
  mckpt_checkpoint_free(nullptr);
}

TEST(ApiC, ListsAllTensorsInOneCall) {
  mckpt_checkpoint* c = mckpt_open(kModel.c_str(), nullptr, nullptr);
  ASSERT_TRUE(c);
  mckpt_table table;
  ASSERT_EQ(mckpt_tensor_table(c, &table, nullptr), 0);
  ASSERT_EQ(table.count, 45);
  const char* name = table.names;
  const char* dtype = table.dtypes;
  const int64_t* dims = table.shapes;
  std::vector<bool> seen(45);
  for (int64_t i = 0; i < table.count; i++) {
    mckpt_tensor t = mckpt_tensor_at(c, i);
    EXPECT_STREQ(t.name, name);
    EXPECT_STREQ(t.dtype, dtype);
    EXPECT_EQ(static_cast<int64_t>(t.rank), table.ranks[i]);
    EXPECT_TRUE(std::equal(t.shape, t.shape + t.rank, dims));
    EXPECT_EQ(t.bytes, table.bytes[i]);
    name += std::strlen(name) + 1, dtype += std::strlen(dtype) + 1, dims += t.rank;
    seen[table.in_files[i]] = true;
  }
  EXPECT_EQ(name - table.names, table.names_bytes);
  EXPECT_EQ(dtype - table.dtypes, table.dtypes_bytes);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 45);
  // In the order of the files, the places in one file ascend.
  std::pair<std::string, int64_t> before;
  for (int64_t i = 0; i < table.count; i++) {
    mckpt_stretch s;
    ASSERT_EQ(mckpt_tensor_stretch(c, mckpt_tensor_at(c, table.in_files[i]).name, &s, nullptr), 0);
    ASSERT_TRUE(s.file);
    std::pair<std::string, int64_t> place(s.file, s.offset);
    EXPECT_LT(before, place);
    before = place;
  }
  int64_t numbers[45];
  ASSERT_EQ(mckpt_matching(c, "model.norm*", numbers, nullptr), 1);
  EXPECT_EQ(numbers[0], 44);
  EXPECT_EQ(mckpt_matching(c, "nothing*", numbers, nullptr), -1);
  mckpt_checkpoint_free(c);
}

// The text, which is freed.
std::string taken(char* text) {
  std::string copy = text ? text : "null";
  mckpt_text_free(text);
  return copy;
}

TEST(ApiC, WritesSmallThingsAsJson) {
  mckpt_checkpoint* c = mckpt_open(kModel.c_str(), nullptr, nullptr);
  ASSERT_TRUE(c);
  EXPECT_EQ(taken(mckpt_checkpoint_json(c, nullptr)).find("{\"path\""), 0u);
  EXPECT_EQ(taken(mckpt_objects_json(c, nullptr)).find("{\"objects\""), 0u);
  EXPECT_NE(taken(mckpt_chunks_json(c, "model.norm.weight", nullptr)).find("\"sizes\": [16]"),
            std::string::npos);
  EXPECT_NE(taken(mckpt_statistics_json(c, "model.norm.weight", 1, nullptr)).find("\"numbers\": 16"),
            std::string::npos);
  EXPECT_EQ(taken(mckpt_digest(c, "model.norm.weight", nullptr)).size(), 64u);
  mckpt_error* error = nullptr;
  EXPECT_FALSE(mckpt_digest(c, "model.norm.weigh", &error));
  std::string facts = taken(mckpt_error_json(error));
  EXPECT_NE(facts.find("\"code\": \"MC1007\""), std::string::npos) << facts;
  EXPECT_NE(facts.find("the nearest name is model.norm.weight"), std::string::npos) << facts;
  mckpt_error_free(error);
  mckpt_checkpoint_free(c);
}

TEST(ApiC, AWatchSeesWorkAndStopsIt) {
  impl::TempFolder t;
  std::string source = "source=" + kModel, target = "target=" + t.path() + "/ckpt";
  const char* settings[] = {source.c_str(), target.c_str(), nullptr};
  mckpt_conversion* c = mckpt_plan("to-fsdp", settings, nullptr);
  ASSERT_TRUE(c);
  mckpt_watch* watch = mckpt_watch_new();
  mckpt_observer observer = mckpt_watch_observer(watch);
  EXPECT_EQ(taken(mckpt_watch_json(watch)).find("{\"phase\": \"\""), 0u);
  EXPECT_NE(taken(mckpt_conversion_json(c, nullptr)).find("\"account\": null"), std::string::npos);
  mckpt_watch_stop(watch);
  EXPECT_EQ(mckpt_prove(c, 1, &observer, nullptr), 130);
  EXPECT_EQ(taken(mckpt_watch_json(watch)).find("{\"phase\": \"prove\""), 0u);
  EXPECT_EQ(mckpt_prove(c, 1, nullptr, nullptr), 0);
  EXPECT_NE(taken(mckpt_conversion_json(c, nullptr)).find("\"tensors_in\": 45"), std::string::npos);
  mckpt_watch_free(watch);
  mckpt_conversion_free(c);
}

TEST(ApiC, TakesSettingsByName) {
  impl::TempFolder t;
  std::string source = "source=" + kModel, target = "target=" + t.path() + "/ckpt";
  const char* settings[] = {source.c_str(), target.c_str(), "tp=2", "dtype_rule=*router*=fp32",
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
  EXPECT_EQ(mckpt_conversion_number(c, nullptr), -1);
  std::string made = mckpt_conversion_path(c);
  mckpt_conversion_free(c);

  std::string against = "against=" + kModel;
  const char* compared[] = {against.c_str(), "dtype=keep", "dtype_rule=*router*=fp32", nullptr};
  mckpt_report* report = mckpt_verify(made.c_str(), compared, nullptr, &error);
  ASSERT_TRUE(report) << mckpt_error_text(error);
  EXPECT_EQ(mckpt_report_sound(report), 1);
  EXPECT_EQ(mckpt_report_equal(report), 1);
  mckpt_report_free(report);
}

TEST(ApiC, RefusesASecondValue) {
  std::string source = "source=" + kModel;
  const char* settings[] = {source.c_str(), "target=no", "tp=4", "tp=2", nullptr};
  mckpt_error* error = nullptr;
  EXPECT_FALSE(mckpt_plan("to-fsdp", settings, &error));
  EXPECT_NE(std::string(mckpt_error_text(error)).find("`tp` has one value, and several are given"),
            std::string::npos);
  mckpt_error_free(error);
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

// The texts of the table end at a NUL: the names behind such a text would belong to other tensors.
TEST(ApiC, RefusesNamesWithNul) {
  impl::TempFolder t;
  std::string header = R"({"a\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("c":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  std::string file = t.put("x.safetensors", length + header + "12");
  std::string text = error_text([&](mckpt_error** e) { mckpt_open(file.c_str(), nullptr, e); }, 3);
  EXPECT_NE(text.find("the name of a tensor holds a NUL"), std::string::npos) << text;
  EXPECT_NE(text.find("a\\x00b"), std::string::npos) << text;
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
  EXPECT_NE(planned("to-gguf", {}, 2).find("torch-file, safetensors"), std::string::npos);
  EXPECT_NE(planned("group", {"source=/nowhere", "target=b", "pattern=[*-]"}, 3).find("/nowhere"),
            std::string::npos);
}

}  // namespace api_c_test
}  // namespace mckpt
