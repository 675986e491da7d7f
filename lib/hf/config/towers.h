// Readers of the towers in front of a language model: each fills the vision or the audio tower of a
// ModelConfig from the object of config.json that describes it. All throw kBadConfig or kUnsupportedModel
// with the key. pre: the language model was read, since projectors end in its hidden size.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class ConfigFields;
struct ModelConfig;
struct TowerConfig;

// The entries with the sizes of a tower.
struct TowerKeys {
  std::string_view hidden = "hidden_size", heads = "num_attention_heads", ffn = "intermediate_size";
  std::string_view layers = "num_hidden_layers", head_dim = {};
};
// The width, heads and layers of a tower whose MLPs have no gate; a head is width / heads unless the config
// gives its size.
void read_sizes(const ConfigFields& c, TowerConfig& t, const TowerKeys& keys = {});

// The tower of Qwen3-VL, Qwen3.5 and Qwen3-Omni, under "vision_config" of `top`. `deepstack`: the family may
// feed early vision layers into the decoder.
void read_qwen_vision(const ConfigFields& top, ModelConfig& m, bool deepstack);
// Qwen2.5-VL: no biases of the patches, no positions, a gated MLP.
void read_qwen2_5_vision(const ConfigFields& c, ModelConfig& m);
void read_exaone4_5_vision(const ConfigFields& c, ModelConfig& m);
void read_ernie_vision(const ConfigFields& c, ModelConfig& m);
// The towers of Nemotron (nemotron_towers.cc), from the whole config.
void read_radio(const ConfigFields& c, ModelConfig& m, i64 class_tokens);
void read_parakeet(const ConfigFields& c, ModelConfig& m);
// Towers whose squares of patches are joined (joined_towers.cc), from the whole config.
void read_internvit(const ConfigFields& top, ModelConfig& m);
void read_llama4_vision(const ConfigFields& top, ModelConfig& m);
void read_muse_vision(const ConfigFields& top, ModelConfig& m);
// Pixtral, and the number of patches on the side of a square that the projector of `top` joins.
void read_pixtral(const ConfigFields& top, ModelConfig& m);
// SigLIP, as Gemma 3 has it.
void read_siglip(const ConfigFields& c, ModelConfig& m);
// Gemma 4: positions in two directions.
void read_gemma4_vision(const ConfigFields& c, ModelConfig& m);
// Its audio tower, layers of attention and convolution, where the whole config `top` has one.
void read_gemma4_audio(const ConfigFields& top, ModelConfig& m);
// GLM-4.5V: the blocks' MLPs are as wide as the language model, the merger has the width of the config.
void read_glm4v_vision(const ConfigFields& c, ModelConfig& m);
// The tower of MiniMax-M3, its projector and its merger of patches.
void read_minimax_vision(const ConfigFields& top, ModelConfig& m);
// MoonViT as Kimi K2.5 has it under "vision_config" of `top`, and the merger of patches behind it.
void read_moonvit(const ConfigFields& top, ModelConfig& m);
// The perception encoder of Step-3.7, and the two convolutions behind it.
void read_step_vision(const ConfigFields& c, ModelConfig& m);
// Whisper's encoder, as Qwen2-Audio and Qwen3-Omni have it.
void read_audio(const ConfigFields& c, ModelConfig& m);

}  // namespace mckpt::impl
