// The conditions that a model must meet for a row to apply. A table lists the rows of all members of a
// family; conditions choose between them:
//
//   {"self_attention.linear_qkv.bias", ..., Needs::kQkvBias}     Qwen2 has it, Qwen3 does not
#pragma once

#include <span>
#include <string_view>

namespace mckpt::impl {

struct Family;
struct ModelConfig;
struct TowerConfig;

// A condition that a model must meet for a row to apply; needs_name() gives the names.
enum class Needs {
  kAlways,
  kQkvBias,
  kProjBias,
  kQkNorm,
  kOwnValues,    // a projection for the values
  kOneKeyValue,  // one projection for keys and values
  kNoKeys,       // keys and values of an earlier layer
  kKeyNorm,      // a norm of keys that the layer has itself
  kLayerInput,   // every layer gets a part of an embedding of its own
  kSinks,
  kQueryLora,
  kNoQueryLora,
  kRouterBias,
  kExpertBias,
  kExperts,
  kNoExperts,
  kLatent,
  kMambaNorm,
  kSharedExpert,
  kSharedGate,
  kStandardized,
  kVideoEmbedder,
  kAudio,        // an audio tower
  kTowerNorm,    // a norm behind the layers of a tower
  kTowerBias,    // norms of a tower that have biases
  kClipped,      // linear layers of a tower with ranges
  kHashRouting,  // a table of experts
  kNGrams,       // a table of n-grams
  kTied,
  kUntied,
  kExpertsApart,  // one tensor for each expert
  kExpertsFused,  // [experts, out, in]
  kExpertsHub,    // [experts, in, out]
};

// True if the row applies to this model and tower. `form` is how the experts are stored: kExpertsApart,
// kExpertsFused or kExpertsHub.
bool holds(Needs needs, const ModelConfig& model, const TowerConfig& tower, Needs form);

// The name in map files and in `mckpt mappings`: "qkv_bias"; "" for kAlways.
std::string_view needs_name(Needs needs);
Needs needs_from_name(std::string_view name);  // throws kBadMap with the nearest

// True for conditions that models of the family can meet.
bool family_has(const Family& family, Needs needs);

// True for the three forms of experts.
bool is_expert_form(Needs needs);

}  // namespace mckpt::impl
