// Opening a Hugging Face folder: with weights, with the config alone, with a map, and what is refused.
#include "hf/model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "core/base/error.h"
#include "core/base/notes.h"
#include "hf/folder/assets.h"
#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "io/store/store.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/registry.h"
#include "tests/support/golden_weights.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

const std::string kModels = MCKPT_TEST_DATA "/golden/models/";

std::vector<GoldenTensor> tensors_of(const std::string& model) {
  std::ifstream lines(kModels + model + "/tensors.txt");
  return draw_golden(lines);
}

std::string safetensors(const std::vector<GoldenTensor>& tensors) {
  std::string header = "{", data;
  for (const GoldenTensor& t : tensors) {
    std::string shape;
    for (std::size_t d : t.dims) shape += cat(shape.empty() ? "" : ",", d);
    i64 begin = std::ssize(data);
    data += t.bytes;
    header +=
        cat(header.size() > 1 ? "," : "", safetensors_entry(t.name, t.dtype, shape, begin, std::ssize(data)));
  }
  return safetensors_file(header + "}", data);
}

void put_config(const TempFolder& folder, const std::string& model) {
  std::filesystem::copy_file(kModels + model + "/config.json", folder.at("config.json"));
}

std::vector<std::string> texts(const Notes& notes) {
  std::vector<std::string> out;
  for (const Note& n : notes) out.push_back(n.text);
  return out;
}

TEST(HfModel, HasAParameterForEveryTensorOfTheWeights) {
  TempFolder folder;
  put_config(folder, "tiny_dense1");
  folder.put("model.safetensors", safetensors(tensors_of("tiny_dense1")));
  HfModel m = open_hf_model(folder.path());
  ASSERT_TRUE(m.has_data());
  EXPECT_EQ(m.map->sources().size(), m.store->tensor_count());
  EXPECT_EQ(m.map->sources().size(), 14);
  EXPECT_EQ(m.config.architecture, "Qwen3ForCausalLM");
  EXPECT_TRUE(m.map->unread().empty());
  EXPECT_TRUE(notes_of(m).empty());
}

TEST(HfModel, PromisesTheTensorsOfAConfigAlone) {
  HfModel m = open_hf_model(kModels + "tiny_dense1");
  EXPECT_FALSE(m.has_data());
  EXPECT_EQ(m.map->sources().size(), 14);
  EXPECT_TRUE(unlike_copies(m, 1).empty());
}

TEST(HfModel, ReadsTheTableOfTensorsThatACheckpointKeeps) {
  TempFolder with, without;
  put_config(with, "tiny_dense1"), put_config(without, "tiny_dense1");
  with.put("model.safetensors", safetensors(tensors_of("tiny_dense1")));
  HfModel m = open_hf_model(with.path());
  without.put(std::string(kTensorTableName),
              tensor_table_json(m.map->sources(), ExpertLayout::kFused, m.map_text, original_files(m)));
  HfModel kept = open_hf_model(without.path());
  ASSERT_EQ(kept.map->sources().size(), 14);
  EXPECT_EQ(kept.expert_layout, ExpertLayout::kFused);
  for (i32 t = 0; t < 14; t++) EXPECT_EQ(kept.map->sources()[t].name, m.map->sources()[t].name);
  // An option counts more than what the table says; and decides which item goes where.
  HfModel asked = open_hf_model(without.path(), {.expert_layout = ExpertLayout::kApart});
  EXPECT_EQ(asked.expert_layout, ExpertLayout::kApart);
  EXPECT_NE(mapping_identity(asked), mapping_identity(kept));
}

TEST(HfModel, RefusesATableOfTensorsThatIsTooLarge) {
  TempFolder folder;
  std::string path = folder.put(std::string(kTensorTableName), "{}");
  std::filesystem::resize_file(path, (i64{256} << 20) + 1);
  EXPECT_EQ(thrown_by([&] { tensor_table_text(Folder(folder.path())); }),
            cat("MC1003 ", path,
                ": the JSON file is too large: expected at most 268435456 bytes, found 268435457 bytes"));
}

TEST(HfModel, RefusesAFolderThatIsNotAModel) {
  TempFolder folder;
  EXPECT_EQ(
      thrown_by([&] { open_hf_model(folder.path()); }),
      cat("MC1001 ", folder.path(), ": config.json was not found, and without it the model is not known"));
  folder.put(".metadata", "");
  try {
    open_hf_model(folder.path());
  } catch (const Error& e) {
    EXPECT_NE(e.found().find("checkpoint of a training run"), std::string::npos) << e.found();
  }
  EXPECT_EQ(thrown_by([&] { open_hf_model(folder.at("none")); }).substr(0, 6), "MC1001");
}

TEST(HfModel, RefusesAnotherMapThanTheOneThatTheCheckpointWasMadeWith) {
  TempFolder folder;
  put_config(folder, "tiny_dense1");
  auto map = [](std::string_view reason) {
    return cat(R"({"rows": [], )", R"("unread": [{"name": "model.rotary.inv_freq", "reason": ")", reason,
               R"("}]})");
  };
  std::string file = folder.put("map.json", map("one"));
  EXPECT_EQ(thrown_by([&] {
              open_hf_model(folder.path(), {.map_file = file, .kept_map = map("two")});
            }).substr(0, 6),
            "MC2015");
  EXPECT_EQ(thrown_by([&] { open_hf_model(folder.path(), {.map_file = folder.at("no.json")}); }).substr(0, 6),
            "MC1001");
}

std::vector<std::string> notes_with_map(const std::string& model, std::string_view map) {
  TempFolder folder;
  std::vector<std::string> out;
  for (std::string& text : texts(notes_of(open_hf_model(model, {.map_file = folder.put("map.json", map)}))))
    if (text.find("unread") != text.npos) out.push_back(std::move(text));
  return out;
}

// Rows read the output layer of a model that does not tie it, and experts that are stored apart.
TEST(HfModel, TellsNamesUnderUnreadThatRowsRead) {
  const std::string model = std::string(MCKPT_TEST_DATA "/models/tiny_qwen3_moe");
  EXPECT_EQ(
      notes_with_map(model, R"({"rows": [], "unread": [
    {"name": "lm_head.weight", "reason": "not used"},
    {"name": "model.layers.1.mlp.experts.0.up_proj.weight", "reason": "not used"},
    {"name": "model.layers.{L}.mlp.experts.3.down_proj.weight", "reason": "not used"},
    {"name": "model.rotary.inv_freq", "reason": "computed again"}]})"),
      (std::vector<std::string>{
          "lm_head.weight is named under \"unread\" in the map, and is read by output_layer.weight in this model",
          "model.layers.1.mlp.experts.0.up_proj.weight is named under \"unread\" in the map, and is read by decoder.layers.1.mlp.experts.linear_fc1.weight0 in this model",
          "model.layers.0.mlp.experts.3.down_proj.weight and 1 more are named under \"unread\" in the map, and are read by decoder.layers.0.mlp.experts.linear_fc2.weight3 and 1 more in this model"}));
  // The entry of the family, as `mckpt mappings show` prints it, is about models that tie the two.
  const std::span<const Unread> of_family = family_named("qwen3_moe").unread;
  ASSERT_FALSE(of_family.empty());
  for (const Unread& u : of_family) {
    const std::string copy = u.copy_of.empty() ? "null" : cat("\"", u.copy_of, "\"");
    const std::string map = cat(R"({"rows": [], "unread": [{"name": ")", u.name, R"(", "copy_of": )", copy,
                                R"(, "reason": ")", u.reason, R"("}]})");
    EXPECT_EQ(notes_with_map(model, map), std::vector<std::string>{});
  }
}

// tiny_llama1 is tied: a head in its file is known as a copy of the embedding.
void put_with_head(const TempFolder& folder, bool same) {
  put_config(folder, "tiny_llama1");
  std::vector<GoldenTensor> tensors = tensors_of("tiny_llama1");
  GoldenTensor head = tensors[0];
  EXPECT_EQ(head.name, "model.embed_tokens.weight");
  head.name = "lm_head.weight";
  if (!same) head.bytes.back() = static_cast<char>(head.bytes.back() ^ 1);
  tensors.push_back(head);
  folder.put("model.safetensors", safetensors(tensors));
}

TEST(HfModel, FindsACopyThatIsNotEqualToWhatItRepeats) {
  TempFolder alike, unlike;
  put_with_head(alike, true), put_with_head(unlike, false);
  HfModel same = open_hf_model(alike.path());
  EXPECT_TRUE(unlike_copies(same, 2).empty());
  ASSERT_EQ(texts(notes_of(same)).size(), 1u);
  EXPECT_EQ(
      texts(notes_of(same))[0].find("lm_head.weight is a copy of model.embed_tokens.weight and is not read"),
      0u);
  HfModel other = open_hf_model(unlike.path(), {.leave_unlike_copies = true});
  EXPECT_EQ(unlike_copies(other, 2),
            std::vector<std::string>{"lm_head.weight differs from model.embed_tokens.weight"});
}

// However a model is opened, and whatever for: who forgets to ask would take the head for a copy.
TEST(HfModel, RefusesACopyThatIsNotEqualToWhatItRepeats) {
  TempFolder folder;
  put_with_head(folder, false);
  const std::string path = folder.path();
  auto code = [](const std::string& text) { return text.substr(0, text.find(' ')); };
  auto opened = [&](const HfModelOptions& how) { return code(thrown_by([&] { open_hf_model(path, how); })); };
  auto with_weights = [&](const HfModelOptions& how) {
    return code(thrown_by([&] { open_hf_model(path, open_store(path), how); }));
  };
  EXPECT_EQ(opened({}), "MC2005");
  EXPECT_EQ(opened({.shapes_only = true}), "MC2005");
  EXPECT_EQ(opened({.shapes_only = true, .threads = 1}), "MC2005");
  EXPECT_EQ(opened({.leave_unlike_copies = true}), "nothing");
  EXPECT_EQ(with_weights({}), "MC2005");
  EXPECT_EQ(with_weights({.leave_unlike_copies = true}), "nothing");
}

TEST(HfAssets, AreWhatIsNotAWeight) {
  TempFolder folder;
  for (const char* name : {"config.json", "tokenizer.json", "modeling_x.py", "model.safetensors", "a.bin",
                           "model.safetensors.index.json", ".gitattributes", "mckpt_manifest.json",
                           "latest_checkpointed_iteration.txt", "mckpt_tensors.json",
                           "additional_chat_templates/tool.jinja", "onnx/model.onnx"})
    folder.put(name, "x");
  Folder opened(folder.path());
  EXPECT_EQ(hf_assets(opened), (std::vector<std::string>{"additional_chat_templates/tool.jinja",
                                                         "config.json", "modeling_x.py", "tokenizer.json"}));
  EXPECT_EQ(folders_without_assets(opened), std::vector<std::string>{"onnx/"});
  SideFiles planned = plan_assets(folder.path(), "table", {});
  EXPECT_EQ(planned.names().size(), 5u);
  EXPECT_EQ(planned.left_out, std::vector<std::string>{"onnx/"});
}

}  // namespace
}  // namespace mckpt::impl
