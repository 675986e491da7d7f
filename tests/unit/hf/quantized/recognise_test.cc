// Which tensors are quantised, how, and what is refused: names, shapes and the config against each other.
#include "hf/quantized/recognise.h"

#include <gtest/gtest.h>

#include "hf/quantized/dequantized_store.h"
#include "made_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl::quantized_test {
namespace {

const std::string kFp8 =
    R"({"model_type": "x", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 64]}})";
const std::string kMx = R"({"quantization_config": {"quant_method": "mxfp4"}})";
const std::string kModelOpt =
    R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})";

std::string int_config(int bits, int group) {
  return cat(R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
    "config_groups": {"group_0": {"weights": {"num_bits": )",
             bits, R"(, "strategy": "group", "group_size": )", group, R"(, "symmetric": true}}}}})");
}

// 8 bits in blocks of 4 x 16.
std::string block_config(bool symmetric) {
  return cat(R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int", "strategy": "block",
    "block_structure": [4, 16], "symmetric": )",
             symmetric, "}}}}}");
}

QuantizedModel recognised(const std::vector<MadePart>& tensors, const std::string& config) {
  TempFolder folder;
  put_model(folder, tensors, config);
  std::unique_ptr<Store> store = open_store(folder.path());
  return recognise(*store, quant_declaration_of(*store));
}

std::string words(i64 rows, i64 columns) {
  std::string out;
  for (i64 n : {rows, columns})
    for (int i = 0; i < 8; i++) out += static_cast<char>(n >> (8 * i));
  return out;
}

TEST(Recognise, KnowsEveryDialect) {
  struct Case {
    std::string config;
    std::vector<MadePart> tensors;
    std::string name, text;
    std::vector<i64> dims;
  };
  using D = DType;
  const Case cases[] = {
      {kFp8,
       {{"w.weight", D::kF8E4M3, {300, 130}}, {"w.weight_scale_inv", D::kF32, {3, 3}}},
       "w.weight",
       "fp8 blocks 128x64",
       {300, 130}},
      {"",
       {{"w.weight", D::kF8E4M3, {300, 130}}, {"w.weight_scale_inv", D::kBF16, {3, 2}}},
       "w.weight",
       "fp8 blocks 128x128",
       {300, 130}},
      {"",
       {{"w.weight", D::kF8E5M2, {30, 13}}, {"w.weight_scale", D::kF32, {}}},
       "w.weight",
       "fp8 e5m2 one scale a tensor",
       {30, 13}},
      {"",
       {{"w.weight", D::kF8E4M3, {30, 13}}, {"w.weight_scale", D::kF32, {30, 1}}},
       "w.weight",
       "fp8 one scale a row",
       {30, 13}},
      {"",
       {{"w.weight", D::kF8E4M3, {10, 96}}, {"w.weight_scale", D::kU8, {10, 3}}},
       "w.weight",
       "mxfp8 groups of 32",
       {10, 96}},
      // Fewer rows than a block: a row of scales for the gate, and one for the up projection.
      {kFp8,
       {{"experts.gate_up_proj", D::kF8E4M3, {2, 10, 70}},
        {"experts.gate_up_proj_scale_inv", D::kF32, {2, 2, 2}}},
       "experts.gate_up_proj",
       "fp8 blocks 5x64",
       {2, 10, 70}},
      {kMx,
       {{"experts.down_proj_blocks", D::kU8, {2, 5, 3, 16}}, {"experts.down_proj_scales", D::kU8, {2, 5, 3}}},
       "experts.down_proj",
       "mxfp4 groups of 32",
       {2, 96, 5}},
      {kModelOpt,
       {{"w.weight", D::kU8, {4, 24}},
        {"w.weight_scale", D::kF8E4M3, {4, 3}},
        {"w.weight_scale_2", D::kF32, {}},
        {"w.input_scale", D::kF32, {}}},
       "w.weight",
       "nvfp4 groups of 16",
       {4, 48}},
      {"",
       {{"w.weight_packed", D::kU8, {4, 24}},
        {"w.weight_scale", D::kF8E4M3, {4, 3}},
        {"w.weight_global_scale", D::kF32, {1}}},
       "w.weight",
       "nvfp4 groups of 16",
       {4, 48}},
      {int_config(4, 32),
       {{"w.weight_packed", D::kI32, {6, 8}},
        {"w.weight_scale", D::kBF16, {6, 2}},
        {"w.weight_shape", D::kI64, {2}}},
       "w.weight",
       "int4 groups of 32",
       {6, 64}},
      {block_config(true),
       {{"w.weight_packed", D::kI32, {6, 5}},
        {"w.weight_scale", D::kBF16, {2, 2}},
        {"w.weight_shape", D::kI64, {2}, words(6, 20)}},
       "w.weight",
       "int8 blocks 4x16",
       {6, 20}},
      // Zero points of blocks are not packed.
      {block_config(false),
       {{"w.weight_packed", D::kI32, {6, 5}},
        {"w.weight_scale", D::kBF16, {2, 2}},
        {"w.weight_zero_point", D::kI8, {2, 2}},
        {"w.weight_shape", D::kI64, {2}, words(6, 20)}},
       "w.weight",
       "int8 blocks 4x16",
       {6, 20}},
      {"",
       {{"w.weight_packed", D::kI32, {6, 3}},
        {"w.weight_scale", D::kBF16, {6, 1}},
        {"w.weight_shape", D::kI64, {2}, words(6, 20)}},
       "w.weight",
       "int4 groups of 20",
       {6, 20}},
  };
  for (const Case& c : cases) {
    QuantizedModel model = recognised(c.tensors, c.config);
    for (const Finding& f : model.findings) ADD_FAILURE() << c.text << ": " << f.message;
    ASSERT_EQ(model.tensors.size(), 1u) << c.text;
    EXPECT_EQ(model.tensors[0].name, c.name);
    EXPECT_EQ(scheme_text(model.tensors[0].layout), c.text);
    EXPECT_EQ(model.tensors[0].dims, c.dims) << c.text;
    EXPECT_EQ(model.beside.size() + 1, c.tensors.size()) << c.text;
  }
}

// Whatever blocks the config gives weights.
TEST(Recognise, TakesOneScaleForAllPartsOfATable) {
  using D = DType;
  std::vector<MadePart> tensors = {{"t.shard_0.weight", D::kF8E4M3, {300, 13}},
                                   {"t.shard_1.weight", D::kF8E4M3, {299, 13}},
                                   {"t.weight_scale", D::kF32, {}}};
  QuantizedModel model = recognised(tensors, kFp8);
  EXPECT_TRUE(model.findings.empty());
  ASSERT_EQ(model.tensors.size(), 2u);
  EXPECT_EQ(model.tensors[1].name, "t.shard_1.weight");
  EXPECT_EQ(model.tensors[1].dims, (std::vector<i64>{299, 13}));
  for (const QuantizedTensor& t : model.tensors) EXPECT_EQ(scheme_text(t.layout), "fp8 one scale a tensor");
  EXPECT_EQ(model.beside.size(), 1u);
  tensors[2].dims = {2};
  model = recognised(tensors, kFp8);
  ASSERT_FALSE(model.findings.empty());
  const std::string& message = model.findings[0].message;
  EXPECT_NE(message.find("the parts of a table have one scale"), message.npos) << message;
}

// Each is one finding, about that tensor, with these two sides.
TEST(Recognise, RefusesWhatDoesNotFitTogether) {
  struct Case {
    const char* what;
    std::string config;
    std::vector<MadePart> tensors;
    std::string about, expected, found;
  };
  using D = DType;
  const MadePart codes{"w.weight", D::kF8E4M3, {300, 130}};
  const MadePart packed{"w.weight_packed", D::kI32, {6, 8}},
      shape{"w.weight_shape", D::kI64, {2}, words(6, 64)};
  const Case cases[] = {
      {"fewer rows of scales",
       kFp8,
       {codes, {"w.weight_scale_inv", D::kF32, {2, 3}}},
       "w.weight_scale_inv",
       "[3, 3]",
       "[2, 3]"},
      {"a block of another size",
       "",
       {codes, {"w.weight_scale_inv", D::kF32, {3, 3}}},
       "w.weight_scale_inv",
       "[3, 2]",
       "[3, 3]"},
      {"a scale for each row where blocks are declared",
       kFp8,
       {codes, {"w.weight_scale_inv", D::kF32, {300, 1}}},
       "w.weight_scale_inv",
       "[3, 3]",
       "[300, 1]"},
      {"one scale where blocks are declared",
       kFp8,
       {codes, {"w.weight_scale_inv", D::kF32, {}}},
       "w.weight_scale_inv",
       "[3, 3]",
       "[]"},
      {"integer scales",
       "",
       {codes, {"w.weight_scale_inv", D::kI32, {3, 2}}},
       "w.weight_scale_inv",
       "float32",
       "int32"},
      {"no scales", kFp8, {codes}, "w.weight", "w.weight_scale_inv or _scale", "no such tensor"},
      {"no codes",
       kFp8,
       {{"w.weight_scale_inv", D::kF32, {3, 3}},
        {"v.weight", D::kF8E4M3, {1, 1}},
        {"v.weight_scale_inv", D::kF32, {1, 1}}},
       "w.weight_scale_inv",
       "the codes",
       "none"},
      {"two scales",
       "",
       {codes, {"w.weight_scale_inv", D::kF32, {3, 2}}, {"w.weight_scale", D::kF32, {}}},
       "w.weight",
       "one of them",
       "w.weight_scale_inv and w.weight_scale"},
      {"a stack with one scale",
       "",
       {{"e.gate_up_proj", D::kF8E4M3, {2, 8, 8}}, {"e.gate_up_proj_scale", D::kF32, {}}},
       "e.gate_up_proj_scale",
       "2 scales",
       "1"},
      {"blocks without scales",
       kMx,
       {{"experts.down_proj_blocks", D::kU8, {2, 5, 3, 16}}},
       "experts.down_proj_blocks",
       "a tensor experts.down_proj_scales",
       "no such tensor"},
      {"blocks of 15 bytes",
       kMx,
       {{"experts.down_proj_blocks", D::kU8, {2, 5, 3, 15}}, {"experts.down_proj_scales", D::kU8, {2, 5, 3}}},
       "experts.down_proj_blocks",
       "[experts, rows, groups, 16]",
       "[2, 5, 3, 15]"},
      {"a group without a scale",
       kMx,
       {{"experts.down_proj_blocks", D::kU8, {2, 5, 3, 16}}, {"experts.down_proj_scales", D::kU8, {2, 5, 2}}},
       "experts.down_proj_scales",
       "[2, 5, 3]",
       "[2, 5, 2]"},
      {"values beside their codes",
       kMx,
       {{"e.down_proj", D::kBF16, {2, 96, 5}},
        {"e.down_proj_blocks", D::kU8, {2, 5, 3, 16}},
        {"e.down_proj_scales", D::kU8, {2, 5, 3}}},
       "e.down_proj",
       "one of them",
       "both"},
      {"NVFP4 without the scale of the tensor",
       kModelOpt,
       {{"w.weight", D::kU8, {4, 24}}, {"w.weight_scale", D::kF8E4M3, {4, 3}}},
       "w.weight",
       "w.weight_scale and w.weight_scale_2",
       "w.weight_scale"},
      {"NVFP4 with groups of 32",
       kModelOpt,
       {{"w.weight", D::kU8, {4, 32}},
        {"w.weight_scale", D::kF8E4M3, {4, 2}},
        {"w.weight_scale_2", D::kF32, {}}},
       "w.weight_scale",
       "[4, 4]",
       "[4, 2]"},
      {"two scales of the tensor",
       kModelOpt,
       {{"w.weight", D::kU8, {4, 32}},
        {"w.weight_scale", D::kF8E4M3, {4, 4}},
        {"w.weight_scale_2", D::kF32, {2}}},
       "w.weight_scale_2",
       "[] or [1]",
       "[2]"},
      {"packed codes without a shape",
       int_config(4, 32),
       {packed, {"w.weight_scale", D::kBF16, {6, 2}}},
       "w.weight_packed",
       "a tensor w.weight_shape",
       "no such tensor"},
      {"groups of another size",
       int_config(4, 16),
       {packed, {"w.weight_scale", D::kBF16, {6, 2}}, shape},
       "w.weight_scale",
       "[6, 4]",
       "[6, 2]"},
      {"codes of another width",
       int_config(8, 32),
       {packed, {"w.weight_scale", D::kBF16, {6, 2}}, shape},
       "w.weight_packed",
       "[6, 16]",
       "[6, 8]"},
      {"a shape of other rows",
       "",
       {packed, {"w.weight_scale", D::kBF16, {6, 2}}, {"w.weight_shape", D::kI64, {2}, words(7, 64)}},
       "w.weight_shape",
       "6",
       "7"},
      {"scales of other rows",
       int_config(4, 32),
       {packed, {"w.weight_scale", D::kBF16, {5, 2}}, shape},
       "w.weight_scale",
       "[6, groups]",
       "[5, 2]"},
      {"scales of other blocks",
       block_config(true),
       {{"w.weight_packed", D::kI32, {6, 5}},
        {"w.weight_scale", D::kBF16, {3, 2}},
        {"w.weight_shape", D::kI64, {2}, words(6, 20)}},
       "w.weight_scale",
       "[2, 2]",
       "[3, 2]"},
      {"scales of rows where blocks are declared",
       block_config(true),
       {{"w.weight_packed", D::kI32, {6, 5}},
        {"w.weight_scale", D::kBF16, {6, 1}},
        {"w.weight_shape", D::kI64, {2}, words(6, 20)}},
       "w.weight_packed",
       "strategy block of 4x16",
       "int8 groups of 20"},
      {"a scale of a tensor that has no codes",
       kFp8,
       {codes,
        {"w.weight_scale_inv", D::kF32, {3, 3}},
        {"v.weight", D::kBF16, {4, 4}},
        {"v.weight_scale", D::kF32, {4, 1}}},
       "v.weight_scale",
       "codes of a type that has scales",
       "bfloat16"},
      {"a part that codes of this kind do not have",
       kFp8,
       {codes, {"w.weight_scale_inv", D::kF32, {3, 3}}, {"w.weight_scale_2", D::kF32, {}}},
       "w.weight_scale_2",
       "codes and scales as",
       "w.weight_scale_2 beside codes of"},
      {"another method",
       kMx,
       {codes, {"w.weight_scale_inv", D::kF32, {3, 2}}},
       "w.weight",
       "mxfp4 by config.json",
       "fp8 blocks 128x128"},
      {"nothing is quantised",
       kFp8,
       {{"w.weight", D::kBF16, {3, 2}}},
       "",
       "codes and scales of fp8",
       "tensors of floating-point numbers"},
  };
  for (const Case& c : cases) {
    QuantizedModel model = recognised(c.tensors, c.config);
    ASSERT_EQ(model.findings.size(), 1u) << c.what;
    const Finding& f = model.findings[0];
    EXPECT_EQ(f.tensor, c.about) << c.what;
    EXPECT_EQ(f.code, Code::kQuantMisfit) << c.what;
    EXPECT_FALSE(f.file.empty()) << c.what;
    EXPECT_NE(f.message.find(cat("expected ", c.expected)), std::string::npos) << c.what << ": " << f.message;
    EXPECT_NE(f.message.find(cat("found ", c.found)), std::string::npos) << c.what << ": " << f.message;
  }
}

// A config of compressed-tensors with one group.
std::string group_config(std::string_view weights) {
  return cat(R"({"quantization_config": {"quant_method": "compressed-tensors", "config_groups":
    {"group_0": {"weights": {)",
             weights, "}}}}}");
}

TEST(Recognise, RefusesWhatContradictsASettingOfTheConfig) {
  using D = DType;
  const std::vector<MadePart> rows = {{"w.weight", D::kF8E4M3, {30, 14}},
                                      {"w.weight_scale", D::kF32, {30, 1}}},
                              whole = {{"w.weight", D::kF8E4M3, {30, 14}}, {"w.weight_scale", D::kF32, {}}},
                              ints = {{"w.weight_packed", D::kI32, {6, 8}},
                                      {"w.weight_scale", D::kBF16, {6, 2}},
                                      {"w.weight_shape", D::kI64, {2}, words(6, 64)}},
                              mx = {{"w.weight", D::kF8E4M3, {30, 64}}, {"w.weight_scale", D::kU8, {30, 2}}};
  std::vector<MadePart> points = ints;
  points.push_back({"w.weight_zero_point", D::kI32, {1, 2}});
  struct Case {
    std::string config;
    std::vector<MadePart> tensors;
    std::string expected;  // "": no finding
  };
  const std::string group32 = R"("num_bits": 4, "strategy": "group", "group_size": 32)";
  const Case cases[] = {
      {R"({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3"}})", whole, ""},
      {R"({"quantization_config": {"quant_method": "fp8", "fmt": "e5m2"}})", whole,
       "fmt e5m2 by config.json"},
      {group_config(R"("strategy": "channel", "type": "float", "num_bits": 8)"), rows, ""},
      {group_config(R"("strategy": "tensor")"), rows, "strategy tensor by config.json"},
      {group_config(R"("strategy": "tensor")"), whole, ""},
      {group_config(R"("strategy": "channel")"), whole, "strategy channel by config.json"},
      {group_config(R"("strategy": "channel", "type": "int")"), rows, "type int by config.json"},
      {group_config(R"("strategy": "channel", "num_bits": 4)"), rows, "num_bits 4 by config.json"},
      {group_config(group32), ints, ""},
      {int_config(4, 32), ints, ""},
      {group_config(group32 + R"(}, "format": "nvfp4-pack-quantized", "other": {)"), ints,
       "format nvfp4-pack-quantized by"},
      {R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized"}})", whole,
       "format int-quantized by config.json"},
      {R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}})",
       whole, ""},
      {group_config(group32), points, ""},
      {group_config(group32 + R"(, "symmetric": true)"), ints, ""},
      {group_config(group32 + R"(, "symmetric": true)"), points, "symmetric, so without zero points by"},
      {group_config(group32 + R"(, "symmetric": false)"), points, ""},
      {group_config(group32 + R"(, "symmetric": false)"), ints, "not symmetric, so with zero points by"},
      // Exponents that are bytes are numbers to the format of plain FP8.
      {group_config(R"("strategy": "group", "group_size": 32}, "format": "mxfp8-quantized", "other": {)"), mx,
       ""},
      {group_config(R"("strategy": "group", "group_size": 32}, "format": "float-quantized", "other": {)"), mx,
       "format float-quantized by config.json"},
      {group_config(R"("strategy": "group", "group_size": 32}, "format": "naive-quantized", "other": {)"), mx,
       "format naive-quantized by config.json"},
      {group_config(R"("strategy": "channel"}, "format": "mxfp8-quantized", "other": {)"), rows,
       "format mxfp8-quantized by config.json"},
      {R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}})", mx,
       "format float-quantized by config.json"},
      {R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})", whole,
       "quant_algo NVFP4 by config.json"},
      {R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}})", whole, ""},
      {R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}})", whole,
       ""},
  };
  for (const Case& c : cases) {
    QuantizedModel model = recognised(c.tensors, c.config);
    ASSERT_EQ(model.findings.size(), c.expected.empty() ? 0u : 1u) << c.config;
    if (c.expected.empty()) continue;
    EXPECT_NE(model.findings[0].message.find(cat("expected ", c.expected)), std::string::npos)
        << model.findings[0].message;
  }
}

// Settings with which compressed-tensors itself loads no model.
TEST(Recognise, RefusesSettingsThatExcludeEachOther) {
  using D = DType;
  const std::vector<MadePart> rows = {{"w.weight", D::kI8, {30, 14}}, {"w.weight_scale", D::kF32, {30, 1}}};
  const auto with = [](std::string_view entry) {
    return cat(R"({"quantization_config": {"quant_method": "compressed-tensors", )", entry, "}}");
  };
  const std::pair<std::string, std::string_view> cases[] = {
      {group_config(R"("strategy": "channel", "group_size": null, "actorder": null, "dynamic": false)"), ""},
      {group_config(R"("strategy": "channel", "group_size": -1)"), ""},
      {group_config(R"("strategy": "channel", "group_size": 16)"),
       "strategy channel with a group_size of 16"},
      {group_config(R"("strategy": "channel", "block_structure": [16, 16])"),
       "strategy channel with a block_structure"},
      {group_config(R"("block_structure": [16, 16])"), "strategy null with a block_structure"},
      {group_config(R"("strategy": "channel", "actorder": "group")"), "strategy channel with actorder"},
      {group_config(R"("strategy": "channel", "actorder": "weight")"), ""},
      {group_config(R"("strategy": "channel", "dynamic": true)"), "strategy channel with dynamic true"},
      {with(R"("format": null, "config_groups": {"group_0": {"weights": {"strategy": "channel"}}})"),
       "format null"},
      {with(R"("config_groups": {"group_0": {"weights": null}})"),
       "compressed-tensors of activations or caches alone"},
      {with(R"("config_groups": {})"), "compressed-tensors of activations or caches alone"},
      {with(R"("config_groups": {"a": {"weights": null}, "b": {"weights": {"strategy": "channel"}}})"), ""},
  };
  for (const auto& [config, found] : cases) {
    const QuantizedModel model = recognised(rows, config);
    ASSERT_EQ(model.findings.size(), found.empty() ? 0u : 1u) << config;
    if (found.empty()) continue;
    EXPECT_EQ(model.findings[0].code, Code::kQuantMisfit);
    EXPECT_NE(model.findings[0].message.find(cat("found ", found)), std::string::npos)
        << model.findings[0].message;
  }
  // One scale for each row has a column of its own.
  const std::vector<MadePart> vector = {{"w.weight", D::kI8, {30, 14}}, {"w.weight_scale", D::kF32, {30}}};
  EXPECT_TRUE(recognised(vector, "").findings.empty());
  const QuantizedModel flat = recognised(vector, group_config(R"("strategy": "channel")"));
  ASSERT_EQ(flat.findings.size(), 1u);
  EXPECT_NE(flat.findings[0].message.find("expected [30, 1]"), std::string::npos) << flat.findings[0].message;
}

// Nothing says which of the groups is the module's, so all that fit its codes must have the order.
TEST(Recognise, RefusesNumbersOfGroupsThatAFittingGroupOfTheConfigDoesNotHave) {
  using D = DType;
  const std::vector<MadePart> tensors = {{"w.weight_packed", D::kI32, {6, 8}},
                                         {"w.weight_scale", D::kBF16, {6, 2}},
                                         {"w.weight_shape", D::kI64, {2}, words(6, 64)},
                                         {"w.weight_g_idx", D::kI32, {64}}};
  const std::string ints = R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 32)";
  const std::string ordered = cat(ints, R"(, "actorder": "group")");
  const std::string others = R"("num_bits": 8, "type": "float", "strategy": "channel")";
  const std::pair<std::vector<std::string>, std::string_view> cases[] = {
      {{ordered}, ""},
      {{ordered, ordered}, ""},
      {{ordered, others}, ""},
      {{others, ordered}, ""},
      {{ints}, "no such setting"},
      {{ordered, ints}, "no such setting in 1 of 2 config_groups that these codes fit"},
      {{ints, others, ordered}, "no such setting in 1 of 2 config_groups that these codes fit"},
      {{R"("num_bits": 4)", ordered}, "no such setting in 1 of 2 config_groups that these codes fit"},
  };
  for (const auto& [groups, found] : cases) {
    std::string config;
    for (std::size_t g = 0; g < groups.size(); g++)
      config += cat(g ? ", " : "", "\"group_", g, R"(": {"weights": {)", groups[g], "}}");
    config = cat(R"({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {)",
                 config, "}}}");
    const QuantizedModel model = recognised(tensors, config);
    const auto fault = std::ranges::find(model.findings, false, &Finding::warning);
    ASSERT_EQ(fault == model.findings.end(), found.empty()) << config;
    if (found.empty()) continue;
    EXPECT_EQ(std::tuple(fault->code, fault->tensor),
              std::tuple(Code::kQuantMisfit, std::string("w.weight_g_idx")));
    EXPECT_NE(fault->message.find("the config does not declare them"), std::string::npos) << fault->message;
    EXPECT_TRUE(fault->message.ends_with(cat("found ", found))) << fault->message;
  }
}

// Without a config.json the names decide alone.
TEST(Recognise, RefusesQuantisedTensorsThatAConfigDoesNotDeclare) {
  const std::vector<MadePart> tensors = {{"w.weight", DType::kF8E4M3, {300, 130}},
                                         {"w.weight_scale_inv", DType::kF32, {3, 2}},
                                         {"v.weight", DType::kBF16, {3, 2}}};
  EXPECT_TRUE(recognised(tensors, "").findings.empty());
  for (const char* config : {"{}", R"({"quantization_config": null, "text_config": {"hidden_size": 1}})"}) {
    QuantizedModel model = recognised(tensors, config);
    ASSERT_EQ(model.tensors.size(), 1u);
    ASSERT_EQ(model.findings.size(), 1u) << config;
    const Finding& f = model.findings[0];
    EXPECT_EQ(std::tuple(f.code, f.tensor, f.file, f.warning),
              std::tuple(Code::kQuantMisfit, std::string("w.weight"), std::string("config.json"), false));
    EXPECT_NE(f.message.find("expected an entry quantization_config"), std::string::npos) << f.message;
    EXPECT_NE(f.message.find("found no such entry, and codes with scales of 1 tensor"), std::string::npos)
        << f.message;
  }
  // ModelOpt's own file declares it as well.
  TempFolder folder;
  put_model(folder, {{"w.weight", DType::kF8E4M3, {4, 4}}, {"w.weight_scale", DType::kF32, {}}}, "{}");
  folder.put("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})");
  std::unique_ptr<Store> store = open_store(folder.path());
  EXPECT_TRUE(recognise(*store, quant_declaration_of(*store)).findings.empty());
  // ... and may not say something else than config.json; a file of a quantised cache says nothing of weights.
  folder.put("config.json", R"({"quantization_config": {"quant_method": "mxfp4"}})");
  EXPECT_EQ(thrown_by([&] { quant_declaration_of(*store); }).substr(0, 6), "MC2001");
  folder.put("hf_quant_config.json",
             R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})");
  EXPECT_EQ(quant_declaration_of(*store).config->method, QuantMethod::kMxfp4);
}

// ModelOpt's AWQ multiplies the inputs of a layer, so its weights are not the model's.
TEST(Recognise, RefusesWeightsWhoseInputsAreScaled) {
  QuantizedModel model =
      recognised({{"w.weight", DType::kF8E4M3, {4, 4}},
                  {"w.weight_scale", DType::kF32, {}},
                  {"w.pre_quant_scale", DType::kBF16, {4}}},
                 R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}})");
  ASSERT_EQ(model.findings.size(), 1u);
  EXPECT_EQ(model.findings[0].code, Code::kQuantized);
  EXPECT_EQ(model.findings[0].tensor, "w.pre_quant_scale");
}

TEST(Recognise, LeavesPlainModelsAlone) {
  QuantizedModel model =
      recognised({{"w.weight", DType::kBF16, {3, 2}}, {"v.weight", DType::kF8E4M3, {3, 2}}}, "");
  EXPECT_TRUE(model.empty());
  EXPECT_TRUE(model.beside.empty());
}

}  // namespace
}  // namespace mckpt::impl::quantized_test
