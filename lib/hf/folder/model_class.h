// The tensors of a model by its class, from the tensors of its family's table, which describes the class with
// a language head. Other classes of transformers have the same decoder under another head, or under none:
//
//   LlamaForCausalLM (the table)    model.embed_tokens.weight         ...   lm_head.weight
//   LlamaForTokenClassification     model.embed_tokens.weight         ...   score.weight, score.bias
//   LlamaForQuestionAnswering       transformer.embed_tokens.weight   ...   qa_outputs.weight, qa_outputs.bias
//   LlamaModel                      embed_tokens.weight               ...
//
// The classes were read off transformers 5.23 (test_data/own_names/make_heads.py).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

class JsonValue;
struct HfConfig;

// A tensor that a model's Hugging Face folder has.
struct KnownTensor {
  std::string name;
  std::optional<std::vector<i64>> dims;  // none: only the name is known
};

// Shapes of tensors by their names in a model's folder.
using TensorShapes = NameMap<std::string, std::vector<i64>>;

// The head that the classes of the tables have.
inline constexpr std::string_view kLanguageHead = "lm_head.weight";

// A kind of class, by the end of its name. A constant of the program.
struct ClassKind {
  std::string_view ending;            // "ForTokenClassification"
  std::string_view decoder;           // in front of the decoder's names: "model."
  std::string_view weight{}, bias{};  // of the head; "": none
  i64 rows = 0;                       // of the head; 0: one for each label
  // The families that have it, by what is before the ending: "Llama". Empty: all.
  std::span<const std::string_view> stems{};
};

// How the class of a config relates to its family's table.
enum class ClassRelation : u8 {
  kOfTable,  // the table's own, or none is named
  kOther,    // of a kind that is known: `kind`
  kUnknown,  // nothing is known of its tensors
};
struct ModelClass {
  ClassRelation relation = ClassRelation::kOfTable;
  const ClassKind* kind = nullptr;
};

// The class that the config names. pre: the config has a family.
ModelClass class_of(const HfConfig& config);

// The labels of a classifier by config.json: `num_labels`, or as many as `id2label` has, or two.
i64 labels_of(const JsonValue& config);

// All kinds.
std::span<const ClassKind> class_kinds();

// Replaces the tensors of the table by the tensors of a class of that kind. Empty if the table has names that
// do not say what they become.
std::vector<KnownTensor> tensors_of_kind(std::vector<KnownTensor> table, const ClassKind& kind,
                                         const HfConfig& config, i64 labels);

}  // namespace mckpt::impl
