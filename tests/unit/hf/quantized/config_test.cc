// The declaration of a config, and its text with and without it.
#include "hf/quantized/config.h"

#include <gtest/gtest.h>

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
        R"({"config_groups": {"a": {"weights": {"num_bits": "4"}}}})",
        R"({"config_groups": {"a": {"weights": {"strategy": "group", "group_size": null}}}})"})
    EXPECT_EQ(thrown_by([&] { read(entry); }).substr(0, 6), "MC2001") << entry;
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
