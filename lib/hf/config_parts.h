// What the configs of several families have in common. Everything throws kBadConfig or kUnsupportedModel,
// with the key.
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class ConfigFields;
struct LayerSpec;
struct ModelConfig;

// Names are made for every layer and every expert, so their numbers have limits of their own.
inline constexpr i64 kMostLayers = 10'000, kMostExperts = 100'000, kMostLayerExperts = 2'000'000;

i64 layer_count(const ConfigFields& c, std::string_view key);
i64 read_experts(const ConfigFields& c, std::initializer_list<std::string_view> keys);
// pre: layers and experts are set.
void check_layer_experts(const ConfigFields& c, const ModelConfig& m);

void refuse_flag(const ConfigFields& c, std::string_view key);
void must_divide(const ConfigFields& c, std::string_view whole, i64 n, std::string_view part, i64 by);

// Vocabulary, hidden size and heads, which every decoder has.
void read_text(const ConfigFields& c, ModelConfig& m);
void read_dense_ffn(const ConfigFields& c, ModelConfig& m);
void set_layers(ModelConfig& m, i64 count, LayerSpec spec);
void read_mtp(const ConfigFields& c, ModelConfig& m, i64 most, LayerSpec layer);

// The readers of families, one file each kind; config_families.cc has their table.
void read_llama(const ConfigFields& c, ModelConfig& m);
void read_qwen2(const ConfigFields& c, ModelConfig& m);
void read_qwen3(const ConfigFields& c, ModelConfig& m);
void read_qwen3_moe(const ConfigFields& c, ModelConfig& m);
void read_qwen3_next(const ConfigFields& c, ModelConfig& m);
void read_qwen3_5_text(const ConfigFields& c, ModelConfig& m);
void read_qwen3_5(const ConfigFields& top, ModelConfig& m);
void read_qwen3_5_moe(const ConfigFields& top, ModelConfig& m);
void read_qwen3_vl(const ConfigFields& top, ModelConfig& m);
void read_qwen3_vl_moe(const ConfigFields& top, ModelConfig& m);
void read_nemotron_h(const ConfigFields& c, ModelConfig& m);

}  // namespace mckpt::impl
