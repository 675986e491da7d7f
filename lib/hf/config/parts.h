// Parts that the configs of several families share: heads, layers, experts and MTP depths, which are steps of
// a family's config (hf/config/steps.h). All throw kBadConfig or kUnsupportedModel with the key.
#pragma once

#include <span>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class ConfigFields;
struct HeadDefaults;
struct LayerSpec;
struct ModelConfig;

// Names are made for every layer and every expert, so a config with absurd numbers would cost memory: these
// numbers have limits of their own.
inline constexpr i64 kMostLayers = 10'000, kMostExperts = 100'000, kMostLayerExperts = 2'000'000;

// The number of layers under `key`, at most kMostLayers.
i64 layer_count(const ConfigFields& c, std::string_view key);
// The number of experts under the first of the keys that is present, at most kMostExperts.
i64 read_experts(const ConfigFields& c, std::span<const std::string_view> keys);
// Throws if layers times experts is more than kMostLayerExperts. pre: both are set in the model.
void check_layer_experts(const ConfigFields& c, const ModelConfig& m);

// Throws kUnsupportedModel if the flag is present and true: Megatron's model of the family has no such
// biases.
void refuse_flag(const ConfigFields& c, std::string_view key);
// Throws kBadConfig for the entry `part` unless `by` divides `n`, the value of the entry `whole`.
void must_divide(const ConfigFields& c, std::string_view whole, i64 n, std::string_view part, i64 by);

// Reads the vocabulary, the hidden size and the heads, which every decoder has. Throws kBadConfig for a
// missing entry that has a fixed default.
void read_text(const ConfigFields& c, ModelConfig& m, const HeadDefaults& defaults);
// Whether the activation of MLPs is SiLU, under either of its names; also where the config names none.
bool is_silu(const ConfigFields& c);
// Makes all layers of the model alike.
void set_layers(ModelConfig& m, i64 count, LayerSpec spec);
// Reads the number of MTP depths, at most `most`, under any of its spellings; each depth is a `layer`.
void read_mtp(const ConfigFields& c, ModelConfig& m, i64 most, LayerSpec layer);

// Reads how many experts there are and their width. `keys`: the spellings of the number.
void read_moe(const ConfigFields& c, ModelConfig& m, std::span<const std::string_view> keys);
// Says which layers have a dense MLP: the first `dense` ones of the config, or those that `mlp_layer_types`
// lists, which must agree where both are given. pre: all layers are set.
void choose_dense_layers(const ConfigFields& c, ModelConfig& m, i64 dense);

}  // namespace mckpt::impl
