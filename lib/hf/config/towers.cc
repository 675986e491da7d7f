// Readers of vision and audio towers. transformers writes a tower's entries without those that are the
// default of its class, so each reader states these defaults (transformers 5.23); a wrong size is found when
// the tensors are compared.
#include "hf/config/towers.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/parts.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

void read_tower(const ConfigFields& c, TowerConfig& t, std::string_view heads, std::string_view layers) {
  read_sizes(c, t, {.heads = heads, .layers = layers, .head_dim = "head_dim"});
}

// Sizes are multiplied by the square of it.
i64 read_merge(const ConfigFields& c) {
  i64 merge = c.size("spatial_merge_size");
  if (merge > 1024)
    throw c.error("spatial_merge_size", "is out of range").expected("at most 1024").found(merge);
  return merge;
}

// A position for each patch of a square image.
void read_positions(const ConfigFields& c, VisionConfig& v) {
  v.patch = c.size("patch_size");
  i64 side = c.size("image_size") / v.patch;
  v.positions = checked_mul(side, side, "the number of patches of an image");
}

void need_text_width(const ConfigFields& c, i64 width, const ModelConfig& m) {
  if (width == m.text.hidden) return;
  throw c.error("out_hidden_size", "is not the hidden size of the language model")
      .expected(m.text.hidden)
      .found(width);
}

}  // namespace

void read_sizes(const ConfigFields& c, TowerConfig& t, const TowerKeys& keys) {
  t.hidden = c.size(keys.hidden);
  t.heads = t.kv_groups = c.size(keys.heads);
  if (!keys.head_dim.empty() && c.has(keys.head_dim)) {
    t.head_dim = c.size(keys.head_dim);
  } else {
    must_divide(c, keys.hidden, t.hidden, keys.heads, t.heads);
    t.head_dim = t.hidden / t.heads;
  }
  t.ffn = c.size(keys.ffn);
  t.gated_mlp = t.swiglu = false;
  t.layers.assign(static_cast<std::size_t>(layer_count(c, keys.layers)), {Mixer::kAttention, Ffn::kNone});
}

void read_qwen_vision(const ConfigFields& top, ModelConfig& m, bool deepstack) {
  ConfigFields c = top.object("vision_config");
  TowerConfig& t = m.vision_tower;
  read_tower(c, t, "num_heads", "depth");
  t.qkv_bias = t.proj_bias = true;
  for (LayerSpec& layer : t.layers) layer.ffn = Ffn::kDense;
  VisionConfig& v = m.vision;
  v.in_channels = c.size("in_channels");
  v.patch = c.size("patch_size");
  v.temporal_patch = c.size("temporal_patch_size");
  v.positions = c.size("num_position_embeddings");
  v.out_hidden = c.size("out_hidden_size");
  v.merge = read_merge(c);
  need_text_width(c, v.out_hidden, m);
  // Three layers are the default of the classes with mergers.
  constexpr std::string_view kMergers = "deepstack_visual_indexes";
  v.deepstack =
      deepstack && !c.has(kMergers) && !c.is_null(kMergers) ? 3 : std::ssize(c.numbers_or_none(kMergers));
  if (v.deepstack > 0 && !deepstack)
    throw c.unsupported("deepstack_visual_indexes", "is not empty; this family has no deepstack mergers");
}

// Files of the hub say in_chans, transformers in_channels.
void read_qwen2_5_vision(const ConfigFields& vision, ModelConfig& m) {
  ConfigFields c = vision.with_defaults(R"({"depth": 32, "hidden_size": 3584, "intermediate_size": 3420,
      "num_heads": 16, "patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2,
      "out_hidden_size": 3584})");
  read_tower(c, m.vision_tower, "num_heads", "depth");
  VisionConfig& v = m.vision;
  v.in_channels = c.has_any({"in_channels", "in_chans"}) ? c.size_of({"in_channels", "in_chans"}) : 3;
  v.patch = c.size("patch_size");
  v.temporal_patch = c.size("temporal_patch_size");
  v.out_hidden = c.size("out_hidden_size");
  v.merge = read_merge(c);
  need_text_width(c, v.out_hidden, m);
}

// Megatron's own layers, with keys and values in groups.
void read_exaone4_5_vision(const ConfigFields& vision, ModelConfig& m) {
  ConfigFields c = vision.with_defaults(R"({"depth": 32, "hidden_size": 3584, "intermediate_size": 3420,
      "num_heads": 16, "num_key_value_heads": 8, "in_channels": 3, "patch_size": 14, "temporal_patch_size": 2,
      "spatial_merge_size": 2, "out_hidden_size": 3584})");
  TowerConfig& t = m.vision_tower;
  read_tower(c, t, "num_heads", "depth");
  t.kv_groups = c.size("num_key_value_heads");
  must_divide(c, "num_heads", t.heads, "num_key_value_heads", t.kv_groups);
  t.qkv_bias = t.proj_bias = t.gated_mlp = t.whole_groups = true;
  t.swiglu = is_silu(c);
  for (LayerSpec& layer : t.layers) layer.ffn = Ffn::kDense;
  VisionConfig& v = m.vision;
  v.in_channels = c.size("in_channels");
  v.patch = c.size("patch_size");
  v.temporal_patch = c.size("temporal_patch_size");
  v.out_hidden = c.size("out_hidden_size");
  v.merge = read_merge(c);
  need_text_width(c, v.out_hidden, m);
}

void read_pixtral(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c =
      top.object("vision_config").with_defaults(R"({"hidden_size": 1024, "intermediate_size": 4096,
      "num_hidden_layers": 24, "num_attention_heads": 16, "num_channels": 3, "patch_size": 16})");
  if (std::string type = c.text_or("model_type", "pixtral"); type != "pixtral")
    throw c.unsupported("model_type", "is another vision tower").expected("pixtral").found(escaped(type));
  read_tower(c, m.vision_tower, "num_attention_heads", "num_hidden_layers");
  VisionConfig& v = m.vision;
  v.in_channels = c.size("num_channels");
  v.patch = c.size("patch_size");
  v.merge = read_merge(top.with_defaults(R"({"spatial_merge_size": 2})"));
}

// The pooling head that SigLIP can have is not part of these models: Megatron-Bridge builds the tower without
// it, also where the config does not mention it. Tensors of a head are then read by no parameter, which is
// refused by their names.
void read_siglip(const ConfigFields& vision, ModelConfig& m) {
  ConfigFields c =
      vision.with_defaults(R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
      "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 16})");
  if (c.flag_or("vision_use_head", false))
    throw c.unsupported("vision_use_head", "is not false; Megatron's model has no tensors of a pooling head");
  read_tower(c, m.vision_tower, "num_attention_heads", "num_hidden_layers");
  m.vision.in_channels = c.size("num_channels");
  read_positions(c, m.vision);
}

void read_gemma4_vision(const ConfigFields& vision, ModelConfig& m) {
  ConfigFields c =
      vision.with_defaults(R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16,
      "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "patch_size": 16,
      "position_embedding_size": 10240})");
  refuse_flag(c, "attention_bias");
  read_tower(c, m.vision_tower, "num_attention_heads", "num_hidden_layers");
  m.vision_tower.kv_groups = c.size("num_key_value_heads");
  m.vision_tower.clipped = c.flag_or("use_clipped_linears", false);
  m.vision.in_channels = 3;
  m.vision.patch = c.size("patch_size");
  m.vision.positions = c.size("position_embedding_size");
  m.vision.standardized = c.flag_or("standardize", false);
}

// Two convolutions of step 2. transformers takes as many frequencies behind them as a quarter of the channels
// of the first.
void read_gemma4_audio(const ConfigFields& top, ModelConfig& m) {
  constexpr std::string_view kChannels = "subsampling_conv_channels";
  if (!top.has("audio_config")) return;
  const ConfigFields c = top.object("audio_config");
  TowerConfig& t = m.audio_tower;
  t.hidden = c.size_or("hidden_size", 1024);
  t.heads = t.kv_groups = c.size_or("num_attention_heads", 8);
  must_divide(c, "hidden_size", t.hidden, "num_attention_heads", t.heads);
  t.head_dim = t.hidden / t.heads;
  t.ffn = checked_mul(t.hidden, 4, "the width of a feed-forward part");
  t.gated_mlp = t.swiglu = false;
  t.clipped = c.flag_or("use_clipped_linears", true);
  t.layers.assign(
      static_cast<std::size_t>(c.has("num_hidden_layers") ? layer_count(c, "num_hidden_layers") : 12),
      {Mixer::kAttention, Ffn::kNone});
  std::vector<i64> channels = {128, 32};
  if (c.has(kChannels)) channels = c.numbers_or_none(kChannels);
  if (channels.size() != 2 ||
      std::ranges::any_of(channels, [](i64 n) { return n < 1 || n > ConfigFields::kLargest; }))
    throw c.error(kChannels, "is not the channels of two convolutions").expected("two numbers");
  AudioConfig& a = m.audio;
  a.channels = channels[0];
  a.last_channels = channels[1];
  a.bins = a.channels / 4;
  a.kernel = c.size_or("conv_kernel_size", 5);
  a.out_hidden = c.size_or("output_proj_dims", 1536);
}

void read_glm4v_vision(const ConfigFields& vision, ModelConfig& m) {
  ConfigFields c =
      vision.with_defaults(R"({"depth": 24, "hidden_size": 1536, "num_heads": 12, "in_channels": 3,
      "image_size": 336, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
      "out_hidden_size": 4096, "intermediate_size": 13696})");
  refuse_flag(c, "attention_bias");
  read_tower(c, m.vision_tower, "num_heads", "depth");
  VisionConfig& v = m.vision;
  v.in_channels = c.size("in_channels");
  v.temporal_patch = c.size("temporal_patch_size");
  v.out_hidden = c.size("out_hidden_size");
  v.merge = read_merge(c);
  read_positions(c, v);
  need_text_width(c, v.out_hidden, m);
}

void read_minimax_vision(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c =
      top.object("vision_config").with_defaults(R"({"hidden_size": 1280, "intermediate_size": 5120,
      "num_hidden_layers": 32, "num_attention_heads": 16, "num_channels": 3, "patch_size": 14,
      "temporal_patch_size": 2, "spatial_merge_size": 2})");
  read_tower(c, m.vision_tower, "num_attention_heads", "num_hidden_layers");
  VisionConfig& v = m.vision;
  v.in_channels = c.size("num_channels");
  v.patch = c.size("patch_size");
  v.temporal_patch = c.size("temporal_patch_size");
  v.merge = read_merge(c);
  v.projector = top.size_or("projector_hidden_size", 6144);
}

void read_ernie_vision(const ConfigFields& vision, ModelConfig& m) {
  ConfigFields c = vision.with_defaults(R"({"depth": 32, "hidden_size": 1280, "intermediate_size": 5120,
      "num_heads": 16, "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_merge_size": 2})");
  read_tower(c, m.vision_tower, "num_heads", "depth");
  VisionConfig& v = m.vision;
  v.in_channels = c.size("in_channels");
  v.patch = c.size("patch_size");
  v.merge = read_merge(c);
  v.temporal_merge = c.size("temporal_merge_size");
}

// Files of the hub say vt_hidden_size and mm_hidden_size, transformers hidden_size and, outside of the
// tower's object, projection_hidden_size.
void read_moonvit(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c = top.object("vision_config");
  auto number = [&](std::string_view hub, std::string_view key, i64 otherwise) {
    return c.has(hub) ? c.size(hub) : c.size_or(key, otherwise);
  };
  const std::string_view layers =
      c.has("vt_num_hidden_layers") ? "vt_num_hidden_layers" : "num_hidden_layers";
  TowerConfig& t = m.vision_tower;
  t.hidden = number("vt_hidden_size", "hidden_size", 1152);
  t.heads = t.kv_groups = number("vt_num_attention_heads", "num_attention_heads", 16);
  must_divide(c, "vt_hidden_size", t.hidden, "vt_num_attention_heads", t.heads);
  t.head_dim = t.hidden / t.heads;
  t.ffn = number("vt_intermediate_size", "intermediate_size", 4304);
  t.gated_mlp = t.swiglu = false;
  t.layers.assign(static_cast<std::size_t>(c.has(layers) ? layer_count(c, layers) : 27),
                  {Mixer::kAttention, Ffn::kNone});
  VisionConfig& v = m.vision;
  v.in_channels = 3;
  v.patch = c.size_or("patch_size", 14);
  v.rows = number("init_pos_emb_height", "pos_emb_height", 64);
  v.columns = number("init_pos_emb_width", "pos_emb_width", 64);
  v.out_hidden = c.size_or("mm_hidden_size", top.size_or("projection_hidden_size", t.hidden));
  std::vector<i64> merge = {2, 2};
  if (c.has("merge_kernel_size")) merge = c.numbers_or_none("merge_kernel_size");
  if (merge.size() != 2 || std::ranges::any_of(merge, [](i64 n) { return n < 1 || n > 1024; }))
    throw c.error("merge_kernel_size", "is not the size of a merged block")
        .expected("two numbers of 1 to 1024");
  v.projector = checked_mul(v.out_hidden, merge[0] * merge[1], "the width of a merged block");
  if (std::string type = c.text_or("mm_projector_type", "patchmerger"); type != "patchmerger")
    throw c.unsupported("mm_projector_type", "is another projector")
        .expected("patchmerger")
        .found(escaped(type));
  if (c.has("text_hidden_size") && c.size("text_hidden_size") != m.text.hidden)
    throw c.error("text_hidden_size", "is not the hidden size of the language model")
        .expected(m.text.hidden)
        .found(c.size("text_hidden_size"));
}

// Megatron's model has no class token, and norms in front of the blocks alone.
void read_step_vision(const ConfigFields& vision, ModelConfig& m) {
  ConfigFields c = vision.with_defaults(R"({"num_channels": 3, "image_size": 728, "patch_size": 14})");
  // Files of the hub have short names, transformers the usual ones.
  auto number = [&](std::string_view hub, std::string_view key, i64 otherwise) {
    return c.has(hub) ? c.size(hub) : c.size_or(key, otherwise);
  };
  const std::string_view layers = c.has("layers") ? "layers" : "num_hidden_layers";
  TowerConfig& t = m.vision_tower;
  t.hidden = number("width", "hidden_size", 1536);
  t.heads = t.kv_groups = number("heads", "num_attention_heads", 16);
  must_divide(c, "width", t.hidden, "heads", t.heads);
  t.head_dim = t.hidden / t.heads;
  const double ratio = c.real_or("mlp_ratio", 8960.0 / 1536.0);
  if (!(ratio > 0 && ratio < 1024))
    throw c.error("mlp_ratio", "is out of range").expected("more than 0, less than 1024");
  t.ffn = static_cast<i64>(static_cast<double>(t.hidden) * ratio);
  t.gated_mlp = t.swiglu = false;
  t.layers.assign(static_cast<std::size_t>(c.has(layers) ? layer_count(c, layers) : 47),
                  {Mixer::kAttention, Ffn::kNone});
  m.vision.in_channels = c.size("num_channels");
  read_positions(c, m.vision);
  for (auto [key, needed] : {std::pair("use_cls_token", false),
                             {"use_ln_pre", true},
                             {"use_ln_post", false},
                             {"use_abs_posemb", true}})
    if (c.flag_or(key, needed) != needed)
      throw c.unsupported(
          key, cat("is ", needed ? "false" : "true", "; Megatron's tower of this family is not so"));
}

// Three convolutions of step 2 halve the frequencies, rounding up each time; conv_out reads what is left of
// them.
void read_audio(const ConfigFields& audio, ModelConfig& m) {
  ConfigFields c =
      audio.with_defaults(R"({"num_mel_bins": 128, "encoder_layers": 32, "encoder_attention_heads": 20,
      "encoder_ffn_dim": 5120, "d_model": 1280, "max_source_positions": 1500})");
  read_sizes(c, m.audio_tower,
             {.hidden = "d_model",
              .heads = "encoder_attention_heads",
              .ffn = "encoder_ffn_dim",
              .layers = "encoder_layers"});
  AudioConfig& a = m.audio;
  a.mel_bins = a.bins = c.size("num_mel_bins");
  for (int step = 0; step < 3; step++) a.bins = (a.bins + 1) / 2;
  a.positions = c.size("max_source_positions");
  a.channels = c.count_or("downsample_hidden_size", 0);
  a.out_hidden = c.count_or("output_dim", 0);
}

}  // namespace mckpt::impl
