// The table's names are taken apart by the prefix of the decoder, which all classes of a family share.
#include "hf/folder/model_class.h"

#include <algorithm>

#include "core/base/text.h"
#include "hf/config/json.h"
#include "io/json/json.h"
#include "mappings/family.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kDecoder = "model.";
// Layers of multi-token prediction, which some tables have beside the decoder. transformers reads and writes
// models without them, so that no class says more of them than the table.
constexpr std::string_view kBesideDecoder = "mtp.";

// Families whose class for answers keeps "model.", which the others have as "transformer.".
constexpr std::string_view kAnswersOfModel[] = {"Mistral", "Mixtral", "Qwen2Moe"};

// The first row that fits counts.
constexpr ClassKind kKinds[] = {
    {"ForSequenceClassification", "model.", "score.weight"},
    {"ForTokenClassification", "model.", "score.weight", "score.bias"},
    {"ForQuestionAnswering", "model.", "qa_outputs.weight", "qa_outputs.bias", 2, kAnswersOfModel},
    {"ForQuestionAnswering", "transformer.", "qa_outputs.weight", "qa_outputs.bias", 2},
    {"Model", ""},
};

// Ends of the names of classes with a language head.
constexpr std::string_view kLanguageModels[] = {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel"};

// Classes of transformers that save a model under other names than the files on the hub, which the tables
// have.
constexpr std::string_view kOtherNames[] = {"Kimi_K25ForConditionalGeneration"};

// "Llama" of LlamaForCausalLM: the name of the family in the names of its classes.
std::string_view stem_of(std::string_view architecture) {
  for (std::string_view ending : kLanguageModels)
    if (architecture.ends_with(ending)) return architecture.substr(0, architecture.size() - ending.size());
  return architecture;
}

bool is_class_of(const ClassKind& kind, std::string_view stem, std::string_view name) {
  if (!kind.stems.empty() && std::ranges::find(kind.stems, stem) == kind.stems.end()) return false;
  return name == cat(stem, kind.ending) || name == cat(stem, "Text", kind.ending);
}

}  // namespace

ModelClass class_of(const HfConfig& config) {
  const std::string_view name = config.architecture, of_table = config.family->architecture;
  if (std::ranges::find(kOtherNames, name) != std::end(kOtherNames)) return {ClassRelation::kUnknown};
  if (name.empty() || name == of_table ||
      std::ranges::any_of(kLanguageModels, [&](std::string_view ending) { return name.ends_with(ending); }))
    return {};
  // Other programs have classes with such endings too, such as LlamaForRewardModel.
  const std::string_view stem = stem_of(of_table);
  for (const ClassKind& kind : kKinds)
    if (is_class_of(kind, stem, name)) return {ClassRelation::kOther, &kind};
  return {ClassRelation::kUnknown};
}

i64 labels_of(const JsonValue& config) {
  const JsonValue* number = config.find("num_labels");
  if (number && number->is(JsonType::kNumber)) return number->integer("num_labels");
  const JsonValue* labels = config.find("id2label");
  return labels && labels->is(JsonType::kObject) ? std::ssize(labels->object("id2label")) : 2;
}

std::span<const ClassKind> class_kinds() { return kKinds; }

std::vector<KnownTensor> tensors_of_kind(std::vector<KnownTensor> table, const ClassKind& kind,
                                         const HfConfig& config, i64 labels) {
  std::erase_if(table, [](const KnownTensor& t) { return t.name == kLanguageHead; });
  for (KnownTensor& t : table) {
    if (t.name.starts_with(kDecoder))
      t.name = cat(kind.decoder, t.name.substr(kDecoder.size()));
    else if (!t.name.starts_with(kBesideDecoder))
      return {};
  }
  const i64 rows = kind.rows > 0 ? kind.rows : labels;
  if (!kind.weight.empty())
    table.push_back({std::string(kind.weight), std::vector<i64>{rows, config.model.text.hidden}});
  if (!kind.bias.empty()) table.push_back({std::string(kind.bias), std::vector<i64>{rows}});
  return table;
}

}  // namespace mckpt::impl
