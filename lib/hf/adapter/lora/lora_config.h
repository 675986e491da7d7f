// adapter_config.json of PEFT as a value: what decides the tensors of a model with the adapter in it.
//
//   {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "use_rslora": true, "rank_pattern": {"q_proj": 2}}
//   scale of model.layers.0.self_attn.q_proj: 6 / sqrt(2)        of ...k_proj: 6 / sqrt(4)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "hf/adapter/lora/targets.h"

namespace mckpt::impl {

class Folder;

// A regular expression for names of modules, as PEFT uses it: for the last parts of a name (a key of
// rank_pattern or alpha_pattern), or for all of it (target_modules).
class ModulePattern {
 public:
  enum Of : u8 { kEnd, kWhole };
  // Throws kBadConfig for what Python and C++ do not read alike, and for patterns that may take very long.
  explicit ModulePattern(std::string text, Of of = kEnd);
  ~ModulePattern();
  // Throws kBadConfig for a name that is too long for an expression.
  bool matches(std::string_view module) const;

 private:
  struct Expression;
  std::string text_;
  Of of_;
  std::unique_ptr<const Expression> expression_;  // null: the text has letters, digits, '_' and '.' alone
};

struct LoraConfig {
  i64 rank = 0;
  double alpha = 0;
  bool by_root = false;         // use_rslora: the scale is alpha / sqrt(rank)
  bool weights_turned = false;  // fan_in_fan_out: the weights of the base are [in, out]
  bool magnitudes = false;      // use_dora
  bool biases = false;          // lora_bias: the second factor has a bias
  bool drops = false;           // lora_dropout: some of the input was dropped in training
  // Patterns of modules with another rank or alpha, the first that matches decides.
  struct Exception {
    std::shared_ptr<const ModulePattern> pattern;
    double value = 0;
  };
  std::vector<Exception> ranks{}, alphas{};
  std::vector<std::string> parameters{};  // target_parameters: ends of names of parameters
  TargetRules rules{};
  // trainable_token_indices: rows that are replaced, by the end of the module's name; "": of the embedding of
  // tokens.
  struct Tokens {
    std::string module;
    std::vector<i64> rows;
    bool is_for(std::string_view name) const;  // a module, by its name in the model
    bool is_of_embedding() const;
  };
  std::vector<Tokens> tokens{};
  bool keeps_tie = false;  // ensure_weight_tying: what is saved of a tied embedding is the output layer's too
  std::string base_class{};  // auto_mapping: the class of the base in transformers
  std::string base{};        // base_model_name_or_path
  std::string text{};        // the file

  // The rank of a module, or of a parameter that target_parameters names, by its name in the model.
  i64 rank_of(std::string_view module) const;
  // The factor of the product of matrices.
  double scale_of(std::string_view module) const;
};

// Throws kBadJson; kBadConfig for an adapter of another kind, for entries that contradict each other, and for
// an entry that changes the result in a way that is not computed, known or not.
LoraConfig parse_lora_config(std::string_view text);

// Why an adapter of this config is not computed, though it may be right; "" for one that is. Throws kBadJson,
// and kBadConfig for what is not an object.
std::string why_not_computed(std::string_view text);

// The first entry beside `r` and `lora_alpha` that decides the merged model and is another in the two texts;
// "" if there is none. An entry that is false, null or empty is as one that is missing; lists of modules have
// no order. `whole`: without an entry, `other` says that there is none. pre: parse_lora_config() took both.
std::string unlike_entry(std::string_view one, std::string_view other, bool whole);

// The config of the folder. Throws the same, with the file.
LoraConfig read_lora_config(const Folder& folder);

}  // namespace mckpt::impl
