// The declaration of a config, and its text with and without it.
#include "hf/quantized/config.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "hf/quantized/presets.h"
#include "io/json/json.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

QuantConfig read(const char* entry) { return quant_config_of(parse_json(entry)); }

TEST(QuantConfig, HasTheSizesThatEachLibraryWrites) {
  QuantConfig fp8 = read(R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 64]})");
  EXPECT_EQ(fp8.method, QuantMethod::kFp8);
  EXPECT_EQ(std::pair(fp8.block_rows, fp8.block_columns), std::pair(i64{128}, i64{64}));
  QuantConfig packed =
      read(R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
    {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "strategy": "group"}}}})");
  ASSERT_EQ(packed.weights.size(), 1u);
  EXPECT_EQ(packed.weights[0].bits, 4);
  EXPECT_EQ(packed.weights[0].group_size, 32);
  EXPECT_EQ(packed.text, "compressed-tensors pack-quantized");
  EXPECT_EQ(read(R"({"quantization": {"quant_algo": "NVFP4", "group_size": 16}})").method,
            QuantMethod::kModelOpt);
  EXPECT_EQ(read(R"({"quant_method": "mxfp4", "weight_block_size": null})").method, QuantMethod::kMxfp4);
}

TEST(QuantConfig, RefusesWhatIsNotDecoded) {
  for (const char* entry :
       {R"({"quant_method": "gptq", "bits": 4})", R"({"quant_method": "awq"})",
        R"({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"})",
        R"({"quant_method": "modelopt", "quant_algo": "NVFP4_SVD"})",
        R"({"quant_method": "modelopt", "quant_algo": "FOO"})",
        R"({"quant_method": "compressed-tensors", "transform_config": {"config_groups": {"R1": {}}}})"})
    EXPECT_EQ(thrown_by([&] { read(entry); }).substr(0, 6), "MC2004") << entry;
  for (const char* entry :
       {R"({"quant_method": "fp8", "weight_block_size": [128]})",
        R"({"quant_method": "fp8", "weight_block_size": [0, 1]})", R"("fp8")", R"({"bits": 4})",
        R"({"quant_method": "fp8", "weight_block_size": "128"})",
        R"({"config_groups": {"a": {"weights": {"num_bits": "four"}}}})",
        R"({"config_groups": {"a": {"weights": {"strategy": "block", "block_structure": "64x0"}}}})",
        R"({"config_groups": {"W4A17": ["Linear"]}})", R"({"config_groups": {"group_0": ["Linear"]}})",
        R"({"config_groups": {"a": {"weights": {"strategy": "group", "group_size": null}}}})"})
    EXPECT_EQ(thrown_by([&] { read(entry); }).substr(0, 6), "MC2001") << entry;
}

// compressed-tensors 0.20, and for blocks in a string its releases up to 0.10.2, read them so.
TEST(QuantConfig, ReadsNamesInUpperCaseAndNumbersInStrings) {
  const QuantConfig c = read(R"({"config_groups": {"a": {"weights": {"num_bits": " 4", "type": "INT",
      "strategy": "GROUP", "group_size": 32}}, "b": {"weights": {"type": "Float", "strategy": "Block",
      "block_structure": "64x32"}}}})");
  ASSERT_EQ(c.weights.size(), 2u);
  EXPECT_EQ(std::tuple(c.weights[0].bits, c.weights[0].type, c.weights[0].strategy),
            std::tuple(i64{4}, std::string("int"), std::string("group")));
  EXPECT_EQ(std::tuple(c.weights[1].type, c.weights[1].strategy, c.weights[1].block_rows,
                       c.weights[1].block_columns),
            std::tuple(std::string("float"), std::string("block"), i64{64}, i64{32}));
  EXPECT_TRUE(c.disputed.empty());
}

// bits, type, strategy, group, rows and columns of a block, "a" for zero points: as compressed-tensors 0.20 has
// them in PRESET_SCHEMES, whose names are all here. W8A16 was a scale for each row before 0.16.
TEST(QuantConfig, KnowsThePresetsOfCompressedTensors) {
  const std::pair<const char*, const char*> presets[] = {
      {"UNQUANTIZED", ""},
      {"W4A16_ASYM", "4 int group 128 0x0 a;"},
      {"W8A8", "8 int channel 0 0x0;"},
      {"INT8", "8 int channel 0 0x0;"},
      {"W4AFP8", "4 int group 128 0x0;"},
      {"FP8", "8 float tensor 0 0x0;"},
      {"FP8_DYNAMIC", "8 float channel 0 0x0;"},
      {"FP8_BLOCK", "8 float block 0 128x128;"},
      {"NVFP4A16", "4 float tensor_group 16 0x0;"},
      {"NVFP4", "4 float tensor_group 16 0x0;"},
      {"MXFP4A16", "4 float group 32 0x0;"},
      {"MXFP4", "4 float group 32 0x0;"},
      {"MXFP4XFP8", "4 float group 32 0x0;"},
      {"MXFP6A16", "6 float group 32 0x0;"},
      {"MXFP6A8", "6 float group 32 0x0;"},
      {"MXFP8A16", "8 float group 32 0x0;"},
      {"MXFP8", "8 float group 32 0x0;"},
      {"W2A4", "2 int group 128 0x0;"},
      {"W2A8", "2 int group 128 0x0;"},
      {"W2A16", "2 int group 128 0x0;"},
      {"W3A4", "3 int group 128 0x0;"},
      {"W3A8", "3 int group 128 0x0;"},
      {"W3A16", "3 int group 128 0x0;"},
      {"W4A4", "4 int group 128 0x0;"},
      {"W4A8", "4 int group 128 0x0;"},
      {"W4A16", "4 int group 128 0x0;"},
      {"W5A8", "5 int group 128 0x0;"},
      {"W5A16", "5 int group 128 0x0;"},
      {"W6A8", "6 int group 128 0x0;"},
      {"W6A16", "6 int group 128 0x0;"},
      {"W7A8", "7 int group 128 0x0;"},
      {"W7A16", "7 int group 128 0x0;"},
      {"W8A16", "8 int group 128 0x0;8 int channel 0 0x0;"},
      {"w8a8", "8 int channel 0 0x0;"}};
  for (const auto& [name, settings] : presets) {
    const QuantConfig c = read(cat(R"({"config_groups": {")", name, R"(": ["Linear"]}})").c_str());
    std::string found;
    for (const QuantConfig::Weights& w : c.weights)
      found += cat(w.bits, " ", w.type, " ", w.strategy, " ", w.group_size, " ", w.block_rows, "x",
                   w.block_columns, w.symmetric.value_or(true) ? "" : " a", ";");
    EXPECT_EQ(found, settings) << name;
    EXPECT_EQ(c.of_weights, *settings != '\0') << name;
  }
  for (const char* name : {"W1A16", "W9A16", "W5A4", "W4A32", "W4A", "W4A16x", "FP9"})
    EXPECT_FALSE(preset_weights(name)) << name;
}

TEST(QuantConfig, NotesSettingsThatOnlySomeReleasesLoad) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("targets": ["Linear"], "weights": {"num_bits": 4, "zp_dtype": null, "scale_dtype": null,
          "observer_kwargs": {"any": 1}, "actorder": "static"}, "format": null)",
       ""},
      {R"("weights": {"actorder": false})", ""},
      {R"("weights": {"actorder": "weight"})", ""},
      {R"("weights": {"actorder": "Group"})", "0.19 and 0.20 load no model with actorder Group in g"},
      {R"("weights": {"actorder": "dynamic"})",
       "load no model with actorder dynamic in g; releases up to 0.18"},
      {R"("weights": {"actorder": true})", "load no model with actorder true in g"},
      {R"("weights": {"foo": 1})", "0.11 to 0.20 loads no model with 'foo' in weights of g; older releases"},
      {R"("foo": 1)", "loads no model with 'foo' in g;"},
      {R"("input_activations": {"foo": 1})", "loads no model with 'foo' in input_activations of g;"},
  };
  for (const auto& [group, text] : cases) {
    const QuantConfig c = read(cat(R"({"config_groups": {"g": {)", group, "}}}").c_str());
    ASSERT_EQ(c.disputed.size(), *text == '\0' ? 0u : 1u) << group;
    EXPECT_TRUE(c.impossible.empty()) << group;
    if (*text == '\0') continue;
    EXPECT_NE(c.disputed[0].find(text), std::string::npos) << c.disputed[0];
  }
  // Other libraries have settings of their own.
  EXPECT_TRUE(read(R"({"quant_method": "modelopt", "quant_algo": "FP8", "config_groups":
      {"g": {"weights": {"foo": 1}}}})")
                  .disputed.empty());
}

TEST(QuantConfig, IsTakenOutOfTheTextAndPutBack) {
  struct Case {
    const char *with, *without;
  };
  const Case cases[] = {
      {"{\n  \"a\": 1,\n  \"quantization_config\": {\"x\": \"}\\\"\"}\n}\n", "{\n  \"a\": 1\n}\n"},
      {"{\"quantization_config\": {\"x\": [1, {}]}, \"b\": \"quantization_config\"}",
       "{\"b\": \"quantization_config\"}"},
      {"{\"a\": 1, \"compression_config\": 5, \"b\": 2}", "{\"a\": 1, \"b\": 2}"},
      {"{\"text_config\": {\"c\": [], \"quantization_config\": {}}}", "{\"text_config\": {\"c\": []}}"},
      {"{\"quantization_config\": {}}", "{}"},
      {"{\"a\": {\"quantization_config\": 1}}", "{\"a\": {\"quantization_config\": 1}}"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(without_quantization(c.with), c.without);
    EXPECT_EQ(without_quantization(c.without), c.without);
    std::string again = with_quantization(c.without, "{\"y\": 7}");
    EXPECT_EQ(quantization_text(again), "{\"y\": 7}") << again;
    parse_json(again);
  }
  EXPECT_EQ(quantization_text("{\"text_config\": {\"quantization_config\": {\"k\": 1}}}"), "{\"k\": 1}");
  EXPECT_EQ(quantization_text("{\"a\": 1}"), "");
}

}  // namespace
}  // namespace mckpt::impl
