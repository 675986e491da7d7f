// How the config.json of a family spells the numbers of ModelConfig: a list of steps, as data, which lib/hf
// carries out in order (hf/config/steps.h).
//
//   size(kMoeFfn, "moe_intermediate_size")        "moe_intermediate_size": 768   -->   moe.ffn = 768; it must be there
//   count_or(kSharedFfn, "shared_size", 0)        absent                         -->   moe.shared_ffn = 0
//   flag(kTied, "tie_word_embeddings", true)      absent                         -->   tied = true
//   refused("mlp_bias")                           "mlp_bias": true               -->   kUnsupportedModel
//   part("gdn_layers")                            several entries are computed   -->   a function of lib/hf of that name
//   inside("text_config", kSteps)                 the steps read the object of that name
//   where("model_type", "qwen3", kSteps)          the steps are for configs that say so
//
// A family with numbers that others have too is such a list in its table (mappings/models), written in the
// words of config_words.h; the functions by name are in hf/config/named_parts.cc.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/base/int.h"
#include "mappings/config.h"

namespace mckpt::impl {

// A member of a ModelConfig, also one of a struct in it.
using NumberOf = i64& (*)(ModelConfig&);
using FlagOf = bool& (*)(ModelConfig&);

// The fixed numbers that transformers takes for entries about heads that a config lacks (transformers 5.23).
// 0: its rule is not a number: as many groups as heads, and a head of hidden size / heads.
struct HeadDefaults {
  i64 kv_groups = 0, head_dim = 0;
  // An explicit null for num_key_value_heads is as many groups as heads. False: where kv_groups is a number,
  // transformers refuses null.
  bool null_groups_are_heads = false;
};

struct ConfigStep {
  enum class Kind : u8 {
    kSize,             // `number`: a positive number under one of the keys; they must agree
    kSizeOr,           // `otherwise` where it is absent
    kCountOr,          // the same, and 0 is a number too
    kCountUnlessNull,  // the same, and null is 0
    kFlag,             // `flag`: true or false, `otherwise` where it is absent
    kFixed,            // `number` is `otherwise`, whatever the config says
    kSame,             // `number` is `other`
    kSet,              // `flag` is `otherwise`
    kRefused,          // a flag that must not be true
    kNeeded,           // a flag that must not be false, which it is not where it is absent; `words` say why
    kDivides,          // `other`, the value of the second key, must divide `number`, the value of the first
    kText,             // the vocabulary, the hidden size and `heads`
    kActivation,       // swiglu, by hidden_act
    kLayers,           // so many `layer`s as num_hidden_layers says
    kExperts,          // their number, within limits, under one of the keys
    kSharedExperts,  // the width of so many shared experts, `otherwise` where the number is absent; null is 0
    kDenseLayers,    // the first ones, by first_k_dense_replace (`otherwise` of them) and mlp_layer_types
    kLayerExperts,   // layers times experts are within limits
    kMtp,            // prediction layers, at most `otherwise`, each a `layer`
    kNoMtp,          // none, whatever was read
    kTied,           // tie_word_embeddings of the whole, or where it has none of its text_config
    kTiedByEither,   // the same, but the flag of either object is enough
    kPart,           // the function `words`, with the number `otherwise`
    kInside,         // `steps`, in the object of the key; `words`: its defaults, as JSON
    kInsideOrHere,   // the same where there is that object; else in this one
    kWhere,          // `steps`, where the text of the key is `words`
    kSteps,          // `steps`
  };
  Kind kind = Kind::kSteps;
  std::array<std::string_view, 3> keys{};
  NumberOf number = nullptr, other = nullptr;
  FlagOf flag = nullptr;
  i64 otherwise = 0;
  HeadDefaults heads{};
  LayerSpec layer{};
  std::string_view words{};
  std::span<const ConfigStep> steps{};
};

}  // namespace mckpt::impl
