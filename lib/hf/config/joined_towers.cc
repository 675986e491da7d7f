// Towers that join squares of patches in front of the projector: of InternVL, Llama 4 and Muse Glimmer. An
// entry that transformers leaves out of a config has the default of its class (transformers 5.23).
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/parts.h"
#include "hf/config/towers.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// A number, or the same number for both directions.
i64 side(const ConfigFields& c, std::string_view key) {
  const JsonValue* value = c.find(key);
  if (!value || !value->is(JsonType::kArray)) return c.size(key);
  const std::vector<i64> sides = c.numbers_or_none(key);
  if (sides.size() != 2 || sides[0] != sides[1] || sides[0] < 1 || sides[0] > ConfigFields::kLargest)
    throw c.unsupported(key, "is not the size of a square").expected("one number twice");
  return sides[0];
}

// A position for each patch of a square image, and one for the class token.
void read_positions(const ConfigFields& c, VisionConfig& v) {
  v.in_channels = c.size("num_channels");
  v.patch = side(c, "patch_size");
  const i64 patches = side(c, "image_size") / v.patch;
  v.positions = checked_mul(patches, patches, "the number of patches of an image") + 1;
}

// The side of the squares that a ratio joins: 0.5 joins 2 x 2.
i64 read_merge(const ConfigFields& c, std::string_view key) {
  const double ratio = c.real_or(key, 0.5);
  const i64 merge = ratio > 0 && ratio <= 1 ? static_cast<i64>(1 / ratio + 0.5) : 0;
  if (merge < 1 || merge > 1024 || static_cast<double>(merge) * ratio != 1)
    throw c.error(key, "is not one part of a whole number")
        .expected("0.5, for squares of 2 x 2")
        .found(ratio);
  return merge;
}

}  // namespace

void read_internvit(const ConfigFields& top, ModelConfig& m) {
  const ConfigFields c =
      top.object("vision_config").with_defaults(R"({"hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 4096, "num_channels": 3, "image_size": 448, "patch_size": 14})");
  read_sizes(c, m.vision_tower);
  m.vision_tower.qkv_bias = c.flag_or("attention_bias", false);
  m.vision_tower.qk_norm = c.flag_or("use_qk_norm", false);
  read_positions(c, m.vision);
  m.vision.merge = read_merge(top, "downsample_ratio");
  m.vision.final_norm = !c.flag_or("use_mean_pooling", true);
  const std::string norm = c.text_or("norm_type", "layer_norm");
  if (norm != "layer_norm" && norm != "rms_norm")
    throw c.unsupported("norm_type", "is another norm")
        .expected("layer_norm or rms_norm")
        .found(escaped(norm));
  m.vision.rms_norms = norm == "rms_norm";
  for (auto [key, needed] : {std::pair("use_mask_token", false), {"use_absolute_position_embeddings", true}})
    if (c.flag_or(key, needed) != needed)
      throw c.unsupported(key, cat("is ", needed ? "false" : "true", "; released towers are not so"));
}

// The three widths of the adapter and the projector are one, or the model cannot run.
void read_llama4_vision(const ConfigFields& top, ModelConfig& m) {
  const ConfigFields c =
      top.object("vision_config").with_defaults(R"({"hidden_size": 768, "num_hidden_layers": 34,
      "num_attention_heads": 16, "intermediate_size": 5632, "num_channels": 3, "image_size": 448, "patch_size": 14,
      "vision_output_dim": 7680, "projector_input_dim": 4096, "projector_output_dim": 4096})");
  refuse_flag(c, "multi_modal_projector_bias");
  read_sizes(c, m.vision_tower);
  read_positions(c, m.vision);
  m.vision.projector = c.size("projector_input_dim");
  for (std::string_view key : {"projector_output_dim", "vision_output_dim"})
    if (c.size(key) != m.vision.projector)
      throw c.unsupported(key, "is not the width of the adapter's input")
          .expected(m.vision.projector)
          .found(c.size(key));
}

void read_muse_vision(const ConfigFields& top, ModelConfig& m) {
  const ConfigFields c =
      top.object("vision_config").with_defaults(R"({"hidden_size": 1536, "num_hidden_layers": 50,
      "num_attention_heads": 16, "intermediate_size": 8960, "patch_size": 14, "patch_temporal": 2,
      "pos_emb_height": 32, "pos_emb_width": 32})");
  read_sizes(c, m.vision_tower);
  VisionConfig& v = m.vision;
  v.in_channels = 3;
  v.patch = c.size("patch_size");
  v.temporal_patch = c.size("patch_temporal");
  v.positions = checked_mul(c.size("pos_emb_height"), c.size("pos_emb_width"), "the number of positions");
  v.out_hidden = top.size_or("out_hidden_size", 6144);
  v.projector = top.size_or("projector_hidden_size", 4096);
}

}  // namespace mckpt::impl
