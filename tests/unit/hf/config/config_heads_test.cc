// Entries about heads that a config lacks: as many groups as heads where that is transformers' rule, and
// refused where transformers takes a fixed number.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "core/base/error.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace config_heads_test {

// The config of a golden model without an entry, or with null for it.
std::string config_with(const std::string& model, const std::string& key, const std::string& value) {
  std::string text = golden_config_text(model);
  std::string without = std::regex_replace(text, std::regex(cat("\"", key, "\": *[0-9]+ *,")), value);
  EXPECT_NE(without, text) << model;
  return without;
}

// "" if the config is read.
std::string refusal(const std::string& text) {
  try {
    read_hf_config(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadConfig);
    std::string all(e.what());
    for (const std::string& note : e.notes()) all += cat("; ", note);
    return all;
  }
  return "";
}

struct Fixed {
  int kv_groups, head_dim;  // 0: no fixed number
};
const std::map<std::string, Fixed> kModels = {
    {"qwen2_bias", {32, 0}},  {"qwen3_dense", {32, 128}}, {"qwen3_moe", {4, 0}},   {"qwen3_next", {2, 256}},
    {"qwen3_5", {4, 256}},    {"qwen3_5_moe", {2, 256}},  {"qwen3_vl", {32, 128}}, {"qwen3_vl_moe", {16, 0}},
    {"nemotron_h", {8, 128}}, {"gpt_oss", {8, 64}},
};

TEST(ConfigHeads, LlamaHasAsManyGroupsAsHeads) {
  for (const char* value : {"", "\"num_key_value_heads\": null,"}) {
    HfConfig c = read_hf_config(config_with("llama3", "num_key_value_heads", value));
    EXPECT_EQ(c.model.text.kv_groups, 8);
  }
}

TEST(ConfigHeads, WhatHasAFixedDefaultIsRefused) {
  for (const auto& [model, fixed] : kModels) {
    std::string said = refusal(config_with(model, "num_key_value_heads", ""));
    EXPECT_NE(said.find("num_key_value_heads' is missing"), said.npos) << model << ": " << said;
    EXPECT_NE(said.find(cat("transformers takes ", fixed.kv_groups, " where")), said.npos)
        << model << ": " << said;
  }
}

// tests/judges/transformers_families.py asks transformers.
TEST(ConfigHeads, NullIsAsManyGroupsAsHeadsWhereTransformersTakesIt) {
  for (const auto& [model, fixed] : kModels) {
    std::string text = config_with(model, "num_key_value_heads", "\"num_key_value_heads\": null,");
    if (model == "qwen2_bias" || model == "qwen3_dense" || model == "qwen3_vl") {
      EXPECT_EQ(read_hf_config(text).model.text.kv_groups, golden_config(model).model.text.heads) << model;
      continue;
    }
    std::string said = refusal(text);
    EXPECT_NE(said.find("num_key_value_heads' is null"), said.npos) << model << ": " << said;
    EXPECT_NE(said.find("transformers, too, refuses null"), said.npos) << model << ": " << said;
  }
}

TEST(ConfigHeads, TheSizeOfAHeadFollowsOnlyWhereNoNumberIsFixed) {
  for (const auto& [model, fixed] : kModels) {
    if (model == "qwen2_bias") continue;  // has no such entry, and is read as it is
    std::string said = refusal(config_with(model, "head_dim", ""));
    if (fixed.head_dim == 0) {
      EXPECT_EQ(said, "") << model;
      continue;
    }
    EXPECT_NE(said.find("head_dim' is missing"), said.npos) << model << ": " << said;
    EXPECT_NE(said.find(cat("transformers takes ", fixed.head_dim, " where")), said.npos)
        << model << ": " << said;
  }
  EXPECT_EQ(golden_config("qwen2_bias").model.text.head_dim,
            golden_config("qwen2_bias").model.text.hidden / 8);
}

}  // namespace config_heads_test
}  // namespace mckpt::impl
