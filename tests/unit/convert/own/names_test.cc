// Checkpoints of real training programs under the names of the Hugging Face folder: names, types, shapes and
// digests of test_data/own_names. And what is refused, in small made stores.
#include "convert/own/names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "core/base/text.h"
#include "hf/config/json.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/model_folder.h"
#include "io/json/json.h"
#include "io/store/open/format_ids.h"
#include "io/values/digest.h"
#include "tests/support/made_store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace own_names_test {

const std::string kData = std::string(MCKPT_TEST_DATA) + "/own_names";

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// "F32 [4, 2] 9f86..." by name.
using Tensors = std::map<std::string, std::string>;

Tensors tensors_of(const Store& store) {
  std::vector<i64> all(static_cast<std::size_t>(store.tensor_count()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::string> digests = tensor_digests(store, all, 2);
  Tensors out;
  for (i64 t : all)
    out.emplace(store.name(t), cat(dtype_info(store.dtype(t)).safetensors, " ", dims_to_string(store.dims(t)),
                                   " ", digests[t]));
  EXPECT_EQ(std::ssize(out), store.tensor_count());
  return out;
}

std::vector<i64> dims_of(const JsonValue& shape) {
  std::vector<i64> out;
  for (const JsonValue& n : shape.array("shape")) out.push_back(n.integer("shape"));
  return out;
}

Tensors expected_of(const std::string& folder) {
  JsonValue json = parse_json(text_of(folder + "/expected.json"));
  Tensors out;
  for (const JsonMember& m : json.find("tensors")->object("tensors"))
    out.emplace(m.name, cat(m.value.find("dtype")->string("dtype"), " ",
                            dims_to_string(dims_of(*m.value.find("shape"))), " ",
                            m.value.find("sha256")->string("sha256")));
  return out;
}

struct Golden {
  const char* name;
  const char* section;
  const char* convention;
  int beside;
};
constexpr Golden kGolden[] = {
    {"accelerate_fsdp1_local", "", "transformers", 0},
    {"accelerate_fsdp1_sharded", "model.", "transformers", 0},
    {"accelerate_fsdp2_full", "", "transformers", 0},
    {"accelerate_fsdp2_sharded", "model.", "transformers, as in memory", 0},
    {"fsdp2_app", "app.model.", "transformers", 21},
    {"fsdp2_bare", "", "transformers", 0},
    {"fsdp2_tp", "model.", "transformers", 0},
    {"torchtitan_deepseek_v3", "", "torchtitan deepseek_v3", 8},
    {"torchtitan_llama3", "", "torchtitan llama3", 8},
    {"torchtitan_qwen3_moe", "", "torchtitan qwen3_moe", 8},
    {"torchtitan_qwen3_tied", "", "torchtitan qwen3", 8},
    {"verl_fsdp2", "", "transformers, as in memory", 0},
    {"wrapped_act_ckpt_module_walk", "", "transformers", 0},
    {"wrapped_compile_of_act_ckpt_module_walk", "", "transformers", 0},
    {"wrapped_compile_of_ddp", "module.", "transformers", 0},
    {"wrapped_compile_per_layer_tied", "", "transformers", 0},
    {"wrapped_dcp_compile_per_layer", "model.", "transformers", 0},
    {"wrapped_ddp_of_compile", "module.", "transformers", 0},
    {"wrapped_fsdp1_named_parameters", "", "transformers", 0},
};

TEST(OwnNames, AreThoseOfTheFolderThatTransformersSaves) {
  std::size_t folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kData)) folders += entry.is_directory();
  EXPECT_EQ(std::size(kGolden), folders);
  for (const Golden& g : kGolden) {
    std::string folder = cat(kData, "/", g.name);
    bool one_file = std::filesystem::exists(folder + "/checkpoint.bin");
    HfConfig config = read_hf_config(text_of(folder + "/config.json"));
    std::unique_ptr<Store> store = open_store(folder + (one_file ? "/checkpoint.bin" : "/checkpoint"));
    OwnNamesOptions how{.config = &config};
    if (store->format() == Format::kTorchFlat)
      how.flat = {known_shapes(find_model_folder(*store, "", folder), {}), config.model.model_type};
    OwnNames own = own_names(std::move(store), how);
    EXPECT_EQ(own.section, g.section) << g.name;
    EXPECT_EQ(own.convention, g.convention) << g.name;
    EXPECT_EQ(std::ssize(own.beside), g.beside) << g.name;
    auto got = tensors_of(*own.store);
    // The view keeps a tied output layer.
    if (config.model.tied) {
      EXPECT_EQ(got.erase("lm_head.weight"), 1u) << g.name;
    }
    EXPECT_EQ(got, expected_of(folder)) << g.name;
  }
}

TEST(OwnNames, OfTorchtitanAreAFactOfTheFolder) {
  std::unique_ptr<Store> store = open_store(kData + "/torchtitan_qwen3_moe/checkpoint");
  std::pair<std::string, std::string> fact("names", "torchtitan");
  EXPECT_NE(std::ranges::find(store->facts(), fact), store->facts().end());
  store = open_store(kData + "/fsdp2_bare/checkpoint");
  EXPECT_EQ(std::ranges::find(store->facts(), fact), store->facts().end());
}

// Every model that transformers stacks, or does not split, as transformers itself has it.
TEST(OwnNames, SplitTheStacksThatTransformersSplits) {
  JsonValue json = parse_json(text_of(kData + "/disk_names.json"));
  for (const JsonMember& model : json.object("disk_names.json")) {
    TempFolder folder;
    std::vector<MadeTensor> memory;
    for (const JsonMember& m : model.value.find("memory")->object("memory"))
      memory.push_back({m.name, dims_of(m.value)});
    const std::string type = model.name.substr(0, model.name.find('/'));
    OwnNames own = own_names(made_store(folder, memory), {.model_type = type});
    std::map<std::string, std::vector<i64>> got, want;
    for (i64 t = 0; t < own.store->tensor_count(); t++) {
      std::span<const i64> dims = own.store->dims(t);
      got[std::string(own.store->name(t))] = {dims.begin(), dims.end()};
    }
    for (const JsonMember& m : model.value.find("disk")->object("disk")) want[m.name] = dims_of(m.value);
    EXPECT_EQ(got, want) << model.name;
  }
}

// A stack that was saved flat, by two ranks: first its shape, then its experts.
TEST(OwnNames, OfFlatStacksAreThoseOfTheirExperts) {
  TempFolder folder;
  const std::string experts = "model.layers.0.mlp.experts.";
  std::unique_ptr<Store> made = made_store(folder, {{experts + "gate_up_proj", {36}, -1, {17}}});
  static_cast<TableStore&>(*made).set_format(Format::kTorchFlat);
  OwnNamesOptions how{.model_type = "qwen3_moe", .flat = {{}, "qwen3_moe"}};
  for (int e = 0; e < 3; e++)
    for (const char* half : {".gate_proj.weight", ".up_proj.weight"})
      how.flat.shapes[cat(experts, e, half)] = {2, 3};
  OwnNames own = own_names(std::move(made), how);
  ASSERT_EQ(own.store->tensor_count(), 6);
  for (i64 e = 0; e < 3; e++)
    for (i64 half : {0, 1}) {
      i64 t = find_tensor(*own.store, cat(experts, e, half == 0 ? ".gate_proj.weight" : ".up_proj.weight"));
      ASSERT_GE(t, 0);
      std::vector<i64> want(6);
      std::iota(want.begin(), want.end(), 12 * e + 6 * half);
      EXPECT_EQ(values_of(*own.store, t), want) << e << " " << half;
    }
}

class OwnNamesOf : public testing::Test {
 protected:
  // The names of the view, or what is thrown.
  std::string names(const std::vector<MadeTensor>& tensors, const OwnNamesOptions& options) {
    std::string out;
    std::string told = thrown_by([&] {
      OwnNames own = own_names(made_store(folder_, tensors), options);
      for (i64 t = 0; t < own.store->tensor_count(); t++)
        out += cat(out.empty() ? "" : " ", own.store->name(t));
    });
    return told == "nothing" ? out : told;
  }

  TempFolder folder_;
};

TEST_F(OwnNamesOf, GateRowsComeBeforeUpRows) {
  std::vector<MadeTensor> stack = {{"model.layers.3.mlp.experts.gate_up_proj", {2, 4, 3}, -1, {1}},
                                   {"model.layers.3.mlp.experts.down_proj", {2, 3, 2}}};
  OwnNames own = own_names(made_store(folder_, stack), {.model_type = "qwen3_moe"});
  auto values = [&](const char* name) { return values_of(*own.store, find_tensor(*own.store, name)); };
  EXPECT_EQ(values("model.layers.3.mlp.experts.0.gate_proj.weight"), (std::vector<i64>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values("model.layers.3.mlp.experts.0.up_proj.weight"), (std::vector<i64>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(values("model.layers.3.mlp.experts.1.gate_proj.weight"),
            (std::vector<i64>{12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(values("model.layers.3.mlp.experts.1.up_proj.weight"),
            (std::vector<i64>{18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(values("model.layers.3.mlp.experts.1.down_proj.weight"),
            (std::vector<i64>{30, 31, 32, 33, 34, 35}));
}

TEST_F(OwnNamesOf, AStackWithoutAModelIsNotGuessedAt) {
  const std::string kStack = "model.layers.0.mlp.experts.gate_up_proj";
  auto begins = [&](const std::vector<MadeTensor>& t, const OwnNamesOptions& o) {
    return names(t, o).substr(0, 6);
  };
  EXPECT_EQ(begins({{kStack, {2, 4, 3}}}, {}), "MC2014");
  EXPECT_EQ(begins({{kStack, {2, 4, 3}}}, {.model_type = "unheard_of"}), "MC2002");
  EXPECT_EQ(names({{kStack, {2, 4, 3}}}, {.stacks = true}), kStack);
  EXPECT_EQ(names({{"model.layers.0.mlp.experts.1.up_proj.weight", {4, 3}}}, {}),
            "model.layers.0.mlp.experts.1.up_proj.weight");
  for (std::vector<i64> dims : {std::vector<i64>{2, 4}, {2, 5, 3}, {i64{1} << 40, 4, 0}, {1 << 19, 4, 0}})
    EXPECT_EQ(begins({{kStack, dims, 0}}, {.model_type = "qwen3_moe"}), "MC2011");
}

TEST_F(OwnNamesOf, AStackBesideItsOwnExpertsIsRefused) {
  EXPECT_EQ(names({{"m.mlp.experts.down_proj", {1, 4, 3}}, {"m.mlp.experts.0.down_proj.weight", {4, 3}}},
                  {.model_type = "qwen3_moe"})
                .substr(0, 6),
            "MC2005");
}

TEST_F(OwnNamesOf, NamesOfOtherProgramsAreRefused) {
  EXPECT_EQ(names({{"layers.0.sa_norm.scale", {3}}, {"tok_embeddings.weight", {3, 2}}}, {}).substr(0, 6),
            "MC1112");
  EXPECT_EQ(names({{"decoder.layers.0.mlp.linear_fc1.weight", {3, 2}}}, {}).substr(0, 6), "MC1112");
}

}  // namespace own_names_test
}  // namespace mckpt::impl
