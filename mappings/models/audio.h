// The rows of audio towers that families share. Megatron takes these towers over as Hugging Face's modules
// (copied() of blocks.h); their layers are registered before or behind the rest, as each family says.
//
//   Whisper's layer     Qwen2-Audio, Qwen2.5-Omni   keys have no bias
//   of convolutions     Qwen3-Omni, Qwen3-ASR       three convolutions in two dimensions in front, two projections behind
#pragma once

#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"

namespace mckpt::impl {

inline constexpr Row kWhisperLayerRows[] = {
    copied("self_attn.k_proj.weight", "hidden hidden"),
    copied("self_attn.v_proj.weight", "hidden hidden"),
    copied("self_attn.v_proj.bias", "hidden"),
    copied("self_attn.q_proj.weight", "hidden hidden"),
    copied("self_attn.q_proj.bias", "hidden"),
    copied("self_attn.out_proj.weight", "hidden hidden"),
    copied("self_attn.out_proj.bias", "hidden"),
    copied("self_attn_layer_norm.weight", "hidden"),
    copied("self_attn_layer_norm.bias", "hidden"),
    copied("fc1.weight", "ffn hidden"),
    copied("fc1.bias", "ffn"),
    copied("fc2.weight", "hidden ffn"),
    copied("fc2.bias", "hidden"),
    copied("final_layer_norm.weight", "hidden"),
    copied("final_layer_norm.bias", "hidden"),
};
inline constexpr LayerRows kWhisperLayer = {.attention = kWhisperLayerRows};

inline constexpr Row kConvAudioLayerRows[] = {
    copied("self_attn.k_proj.weight", "hidden hidden"),
    copied("self_attn.k_proj.bias", "hidden"),
    copied("self_attn.v_proj.weight", "hidden hidden"),
    copied("self_attn.v_proj.bias", "hidden"),
    copied("self_attn.q_proj.weight", "hidden hidden"),
    copied("self_attn.q_proj.bias", "hidden"),
    copied("self_attn.out_proj.weight", "hidden hidden"),
    copied("self_attn.out_proj.bias", "hidden"),
    copied("self_attn_layer_norm.weight", "hidden"),
    copied("self_attn_layer_norm.bias", "hidden"),
    copied("fc1.weight", "ffn hidden"),
    copied("fc1.bias", "ffn"),
    copied("fc2.weight", "hidden ffn"),
    copied("fc2.bias", "hidden"),
    copied("final_layer_norm.weight", "hidden"),
    copied("final_layer_norm.bias", "hidden"),
};
inline constexpr LayerRows kConvAudioLayer = {.attention = kConvAudioLayerRows};
// Behind the layers, which Megatron registers first.
inline constexpr Row kConvAudioRows[] = {
    copied("ln_post.weight", "hidden"),
    copied("ln_post.bias", "hidden"),
    copied("conv2d1.weight", "audio_channels 1 3 3"),
    copied("conv2d1.bias", "audio_channels"),
    copied("conv2d2.weight", "audio_channels audio_channels 3 3"),
    copied("conv2d2.bias", "audio_channels"),
    copied("conv2d3.weight", "audio_channels audio_channels 3 3"),
    copied("conv2d3.bias", "audio_channels"),
    copied("conv_out.weight", "hidden audio_channels*audio_bins"),
    copied("proj1.weight", "hidden hidden"),
    copied("proj1.bias", "hidden"),
    copied("proj2.weight", "audio_out hidden"),
    copied("proj2.bias", "audio_out"),
};

namespace config_blocks {

inline constexpr ConfigStep kConvAudioConfig[] = {
    part("audio"),
    size_or(member<&ModelConfig::audio, &AudioConfig::channels>, "downsample_hidden_size", 480),
    size_or(member<&ModelConfig::audio, &AudioConfig::out_hidden>, "output_dim", 3584),
};

}  // namespace config_blocks
}  // namespace mckpt::impl
