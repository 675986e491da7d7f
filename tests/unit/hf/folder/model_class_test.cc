// Which tensors a model must have, by the class that its config names: those that transformers saves
// (test_data/own_names/make_heads.py), name by name and shape by shape.
#include "hf/folder/model_class.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/notes.h"
#include "core/base/text.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/model_folder.h"
#include "io/json/json.h"
#include "tests/support/golden_heads.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace model_class_test {

using Shapes = GoldenShapes;

KnownTensors known(const std::string& config, const Shapes& stored, Notes& notes) {
  TempFolder folder;
  folder.put("config.json", config);
  TableStore store("nowhere");
  for (const auto& [name, dims] : stored) store.tensors.push_back({name, DType::kF32, dims, {}});
  return known_tensors(find_model_folder(store, "", folder.path()), {}, store, notes);
}

Shapes shapes_of(const KnownTensors& known) {
  Shapes out;
  for (const KnownTensors::Tensor& t : known.tensors) out[t.name] = t.dims.value_or(std::vector<i64>{});
  return out;
}

bool say(const Notes& notes, std::string_view text) {
  return std::ranges::any_of(notes, [&](const auto& note) { return note.text.find(text) != note.text.npos; });
}

TEST(ModelClass, HasTheTensorsThatTransformersSaves) {
  const std::vector<GoldenHead> models = golden_heads();
  ASSERT_GE(models.size(), 14u);
  for (const GoldenHead& model : models) {
    Notes notes;
    EXPECT_EQ(shapes_of(known(model.config, model.tensors, notes)), model.tensors) << model.name;
    EXPECT_TRUE(notes.empty()) << model.name;
  }
}

TEST(ModelClass, RequiresTheDecoderUnderAnyHead) {
  for (const GoldenHead& model : golden_heads())
    for (const auto& [name, dims] : model.tensors) {
      Shapes less = model.tensors;
      less.erase(name);
      Notes notes;
      EXPECT_TRUE(shapes_of(known(model.config, less, notes)).contains(name)) << model.name << " " << name;
    }
}

// The save of verl for a critic: a classifier, beside the config of the language model that it was made of.
TEST(ModelClass, IsThatOfTheHeadWhereTheConfigStillNamesTheLanguageModel) {
  i64 heads = 0;
  for (const GoldenHead& model : golden_heads()) {
    Notes notes;
    const Shapes expected = shapes_of(known(model.with_class("LlamaForCausalLM"), model.tensors, notes));
    if (model.name.ends_with("Model")) {  // nothing says that the head is not merely missing
      EXPECT_TRUE(expected.contains("model.norm.weight")) << model.name;
      continue;
    }
    EXPECT_EQ(expected, model.tensors) << model.name;
    EXPECT_TRUE(say(notes, "; config.json names LlamaForCausalLM: set architectures there")) << model.name;
    const std::string_view ending = std::string_view(model.name).substr(model.name.find("For"));
    EXPECT_TRUE(say(notes, cat(", so it counts as *", ending, ";"))) << model.name;
    heads++;
  }
  EXPECT_GE(heads, 9);
  GoldenHead both = golden_heads()[0];
  Notes unnamed;
  std::string text = both.config;
  known(text.replace(text.find(cat("\"", both.name)), both.name.size() + 2, ""), both.tensors, unnamed);
  EXPECT_TRUE(say(unnamed,
                  "the checkpoint has score.weight and no lm_head.weight, so it counts as "
                  "*ForSequenceClassification; config.json names no class: "));
  both.tensors["lm_head.weight"] = {20, 8};
  Notes notes;
  EXPECT_TRUE(
      shapes_of(known(both.with_class("LlamaForCausalLM"), both.tensors, notes)).contains("lm_head.weight"));
}

TEST(ModelClass, HasTheLabelsThatItsConfigCounts) {
  for (auto [text, labels] : {std::pair(R"({"num_labels": 5})", 5), std::pair("{}", 2),
                              std::pair(R"({"id2label": {"0": "a", "1": "b", "2": "c"}})", 3),
                              std::pair(R"({"num_labels": 1, "id2label": {"0": "a", "1": "b"}})", 1),
                              std::pair(R"({"num_labels": null, "id2label": {"0": "a"}})", 1)})
    EXPECT_EQ(labels_of(parse_json(text)), labels) << text;
}

TEST(ModelClass, IsNotJudgedIfNobodyKnowsIt) {
  for (const char* name :
       {"LlamaForRewardModel", "LlamaForCausalLMEagle3", "Qwen2ForSequenceClassification"}) {
    const GoldenHead model = golden_heads()[0];
    Notes notes;
    EXPECT_TRUE(known(model.with_class(name), model.tensors, notes).tensors.empty()) << name;
    EXPECT_TRUE(say(notes, cat("no table describes the class ", name)));
  }
}

}  // namespace model_class_test
}  // namespace mckpt::impl
