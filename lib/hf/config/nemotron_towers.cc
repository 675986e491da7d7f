// The towers of Nemotron VL and Omni: RADIO, whose sizes the code has as constants (ViT-H/16), so that a
// config need not mention them; and Parakeet, the sound encoder, whose config states them.
#include "core/base/error.h"
#include "hf/config/fields.h"
#include "hf/config/parts.h"
#include "hf/config/towers.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// A square of so many patches is joined as the ratio says: 0.5 joins 2 x 2.
i64 merge_of(const ConfigFields& c) {
  const double ratio = c.real_or("downsample_ratio", 0.5);
  const i64 merge = ratio > 0 && ratio <= 1 ? static_cast<i64>(1 / ratio + 0.5) : 0;
  if (merge < 1 || merge > 1024 || static_cast<double>(merge) * ratio != 1)
    throw c.error("downsample_ratio", "is not one part of a whole number")
        .expected("0.5, for squares of 2 x 2")
        .found(ratio);
  return merge;
}

}  // namespace

void read_radio(const ConfigFields& top, ModelConfig& m, i64 class_tokens) {
  constexpr std::string_view kConstants =
      R"({"num_hidden_layers": 32, "hidden_size": 1280, "num_attention_heads": 16,
      "intermediate_size": 5120, "patch_size": 16, "max_resolution": 2048, "video_temporal_patch_size": 2})";
  const ConfigFields own = top.object("vision_config"), c = own.with_defaults(kConstants);
  TowerConfig& t = m.vision_tower;
  read_sizes(c, t);
  t.qkv_bias = t.proj_bias = true;
  for (LayerSpec& layer : t.layers) layer.ffn = Ffn::kDense;
  VisionConfig& v = m.vision;
  v.unstated = !own.has("hidden_size");
  v.heads_stated = own.has("num_attention_heads");
  v.in_channels = 3;
  v.patch = c.size("patch_size");
  v.temporal_patch = c.size("video_temporal_patch_size");
  const i64 side = c.size("max_resolution") / v.patch;
  v.positions = checked_mul(side, side, "the number of patches of an image");
  v.class_tokens = class_tokens;
  v.video_embedder = c.flag_or("separate_video_embedder", false);
  v.merge = merge_of(top);
  v.projector = top.size("projector_hidden_size");
}

// Without sound_config the model has no sound. Three convolutions of step 2 halve the frequencies, rounding
// up each time.
void read_parakeet(const ConfigFields& top, ModelConfig& m) {
  if (!top.has("sound_config")) return;
  const ConfigFields c = top.object("sound_config");
  refuse_flag(c, "attention_bias");
  refuse_flag(c, "convolution_bias");
  if (i64 factor = c.size_or("subsampling_factor", 8); factor != 8)
    throw c.unsupported("subsampling_factor", "is not the one of three convolutions")
        .expected(8)
        .found(factor);
  read_sizes(c, m.audio_tower);
  AudioConfig& a = m.audio;
  a.mel_bins = a.bins = c.size("num_mel_bins");
  for (int step = 0; step < 3; step++) a.bins = (a.bins + 1) / 2;
  a.channels = c.size_or("subsampling_conv_channels", 256);
  a.kernel = c.size_or("conv_kernel_size", 9);
  a.projector = c.size("projection_hidden_size");
}

}  // namespace mckpt::impl
