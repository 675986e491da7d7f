// Nemotron-H behind towers, as Megatron's LLaVA model: Nemotron-Nano-v2-VL with vision, and
// Nemotron-3-Nano-Omni with vision and sound.
//
//   language_model.backbone.layers.0. ...                  llava_model.language_model.decoder.layers.0. ...
//   vision_model.radio_model.model.blocks.0.attn.qkv       llava_model.vision_model.decoder.layers.0.self_attention.linear_qkv
//   mlp1.1                                                 llava_model.vision_projection.encoder.linear_fc1
//   sound_encoder.encoder.layers.0. ...                    llava_model.sound_model.encoder.layers.0. ...
//
// Peculiar to this family: the vision tower (RADIO) is of Megatron's own modules and split over the cells;
// the sound encoder (Parakeet) is Hugging Face's module, with the running means of its batch norms and a
// count of their batches. The code has the sizes of the vision tower as constants, so that a tower of
// another size shows itself by its tensors.
#include "mappings/models/families.h"
#include "mappings/models/nemotron_h.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kVisionFront[] = {
    {"class_token", "replicate", {{{"cls_token.token", "class_tokens hidden"}}}},
    {"position_embeddings", "replicate", {{{"pos_embed", "1 positions hidden"}}}},
    {"embedder.weight", "column", {{{"embedder.weight", "hidden channels*patch*patch"}}}},
    {"video_embedder.weight",
     "column",
     {{{"video_embedder.weight", "hidden channels*temporal_patch*patch*patch"}}},
     Needs::kVideoEmbedder},
};
constexpr Row kVisionDense[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"norm2.weight", "hidden"}}}},
    {"mlp.linear_fc1.layer_norm_bias", "replicate", {{{"norm2.bias", "hidden"}}}},
    {"mlp.linear_fc1.weight", "column", {{{"mlp.fc1.weight", "ffn hidden"}}}},
    {"mlp.linear_fc1.bias", "column", {{{"mlp.fc1.bias", "ffn"}}}},
    {"mlp.linear_fc2.weight", "row", {{{"mlp.fc2.weight", "hidden ffn"}}}},
    {"mlp.linear_fc2.bias", "replicate", {{{"mlp.fc2.bias", "hidden"}}}},
};
constexpr Row kVisionProjection[] = {
    {"linear_fc1.layer_norm_weight", "replicate", {{{"0.weight", "merged"}}}},
    {"linear_fc1.weight", "column", {{{"1.weight", "projector merged"}}}},
    {"linear_fc2.weight", "row", {{{"3.weight", "text_hidden projector"}}}},
};

// The second and the third of three convolutions are in two parts, one for each channel and one over the
// channels.
constexpr Row kSubsampling[] = {
    copied("layers.0.weight", "audio_channels 1 3 3", Needs::kAudio),
    copied("layers.0.bias", "audio_channels", Needs::kAudio),
    copied("layers.2.weight", "audio_channels 1 3 3", Needs::kAudio),
    copied("layers.2.bias", "audio_channels", Needs::kAudio),
    copied("layers.3.weight", "audio_channels audio_channels 1 1", Needs::kAudio),
    copied("layers.3.bias", "audio_channels", Needs::kAudio),
    copied("layers.5.weight", "audio_channels 1 3 3", Needs::kAudio),
    copied("layers.5.bias", "audio_channels", Needs::kAudio),
    copied("layers.6.weight", "audio_channels audio_channels 1 1", Needs::kAudio),
    copied("layers.6.bias", "audio_channels", Needs::kAudio),
    copied("linear.weight", "hidden audio_channels*audio_bins", Needs::kAudio),
    copied("linear.bias", "hidden", Needs::kAudio),
};
constexpr Row copied_counter(std::string_view name) {
  Row row = copied(name, "");
  row.buffer = row.counter = true;
  return row;
}
constexpr Row kSoundLayer[] = {
    copied("feed_forward1.linear1.weight", "ffn hidden"),
    copied("feed_forward1.linear2.weight", "hidden ffn"),
    copied("self_attn.bias_u", "heads head_dim"),
    copied("self_attn.bias_v", "heads head_dim"),
    copied("self_attn.q_proj.weight", "attention hidden"),
    copied("self_attn.k_proj.weight", "attention hidden"),
    copied("self_attn.v_proj.weight", "attention hidden"),
    copied("self_attn.o_proj.weight", "hidden attention"),
    copied("self_attn.relative_k_proj.weight", "attention hidden"),
    copied("conv.pointwise_conv1.weight", "2*hidden hidden 1"),
    copied("conv.depthwise_conv.weight", "hidden 1 audio_kernel"),
    copied("conv.norm.weight", "hidden"),
    copied("conv.norm.bias", "hidden"),
    copied_buffer("conv.norm.running_mean", "hidden"),
    copied_buffer("conv.norm.running_var", "hidden"),
    copied_counter("conv.norm.num_batches_tracked"),
    copied("conv.pointwise_conv2.weight", "hidden hidden 1"),
    copied("feed_forward2.linear1.weight", "ffn hidden"),
    copied("feed_forward2.linear2.weight", "hidden ffn"),
    copied("norm_feed_forward1.weight", "hidden"),
    copied("norm_feed_forward1.bias", "hidden"),
    copied("norm_self_att.weight", "hidden"),
    copied("norm_self_att.bias", "hidden"),
    copied("norm_conv.weight", "hidden"),
    copied("norm_conv.bias", "hidden"),
    copied("norm_feed_forward2.weight", "hidden"),
    copied("norm_feed_forward2.bias", "hidden"),
    copied("norm_out.weight", "hidden"),
    copied("norm_out.bias", "hidden"),
};
constexpr Row kSoundProjection[] = {
    {"linear_fc1.layer_norm_weight", "replicate", {{{"norm.weight", "hidden"}}}, Needs::kAudio},
    {"linear_fc1.weight", "column", {{{"linear1.weight", "audio_projector hidden"}}}, Needs::kAudio},
    {"linear_fc2.weight", "row", {{{"linear2.weight", "text_hidden audio_projector"}}}, Needs::kAudio},
};

constexpr LayerRows kVisionBlock = {.attention = kVisionAttentionRows, .dense = kVisionDense};
constexpr LayerRows kSoundBlock = {.attention = kSoundLayer};
// Megatron-Bridge maps no experts of the model with vision alone.
constexpr LayerRows kDenseHybrid = {
    .attention = kHybridAttentionRows, .mamba = kHybridMambaRows, .dense = kHybridMlpRows};

constexpr std::string_view kSubsample = "llava_model.sound_model.encoder.subsampling.";
constexpr std::string_view kSubsampleFile = "sound_encoder.encoder.subsampling.";
constexpr std::string_view kSound = "llava_model.sound_model.encoder.layers.{L}.";
constexpr std::string_view kSoundFile = "sound_encoder.encoder.layers.{L}.";
constexpr std::string_view kSoundMlp = "llava_model.sound_projection.encoder.",
                           kSoundMlpFile = "sound_projection.";
constexpr std::string_view kLanguage = "llava_model.language_model.", kText = "language_model.backbone.";
constexpr std::string_view kLayers = "llava_model.language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "language_model.backbone.layers.{L}.";
constexpr std::string_view kVision = "llava_model.vision_model.";
constexpr std::string_view kVisionFile = "vision_model.radio_model.model.patch_generator.";
constexpr std::string_view kBlocks = "llava_model.vision_model.decoder.layers.{L}.";
constexpr std::string_view kBlocksFile = "vision_model.radio_model.model.blocks.{L}.";
constexpr std::string_view kProjector = "llava_model.vision_projection.encoder.";

constexpr Section kSound1 = {Scope::kOnce, kSubsample,    kSubsampleFile, kSubsampling,
                             nullptr,      Stage::kFirst, Tower::kAudio};
constexpr Section kSound2 = {Scope::kLayers, kSound,        kSoundFile,    {},
                             &kSoundBlock,   Stage::kFirst, Tower::kAudio, false};
constexpr Section kSound3 = {Scope::kOnce, kSoundMlp,     kSoundMlpFile, kSoundProjection,
                             nullptr,      Stage::kFirst, Tower::kAudio};
constexpr Section kEmbedding = {Scope::kOnce, kLanguage, kText, kHybridEmbeddingRows};
constexpr Section kNorm = {Scope::kOnce, kLanguage, kText, kHybridFinalNormRows, nullptr, Stage::kFinalNorm};
constexpr Section kOutput = {Scope::kOnce, kLanguage, "language_model.",
                             kOutputRows,  nullptr,   Stage::kOutput};
constexpr Section kTiedOutput = {Scope::kOnce,          kLanguage, kText,
                                 kHybridTiedOutputRows, nullptr,   Stage::kTiedOutput};
constexpr Section kVision1 = {Scope::kOnce, kVision,       kVisionFile,   kVisionFront,
                              nullptr,      Stage::kFirst, Tower::kVision};
constexpr Section kVision2 = {Scope::kLayers, kBlocks,       kBlocksFile,   {},
                              &kVisionBlock,  Stage::kFirst, Tower::kVision};
constexpr Section kVision3 = {Scope::kOnce, kProjector,    "mlp1.",       kVisionProjection,
                              nullptr,      Stage::kFirst, Tower::kVision};

constexpr Section kVlSections[] = {
    kEmbedding, {Scope::kLayers, kLayers, kTextLayers, {}, &kDenseHybrid},
    kNorm,      kOutput,
    kVision1,   kVision2,
    kVision3,   kTiedOutput,
};
constexpr Section kOmniSections[] = {
    kSound1,     kSound2, kSound3,  kEmbedding, {Scope::kLayers, kLayers, kTextLayers, {}, &kHybridLayer},
    kNorm,       kOutput, kVision1, kVision2,   kVision3,
    kTiedOutput,
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.backbone.embeddings.weight", kTiedCopy, Needs::kTied},
    {"vision_model.radio_model.input_conditioner.norm_mean", "",
     "means of pixels, which Megatron's data pipeline has"},
    {"vision_model.radio_model.input_conditioner.norm_std", "",
     "deviations of pixels, which Megatron's data pipeline has"},
    {"vision_model.radio_model.summary_idxs", "", "indices of summary tokens, which no layer reads"},
};

constexpr std::string_view kVlTypes[] = {"NemotronH_Nano_VL_V2"};
constexpr std::string_view kOmniTypes[] = {"NemotronH_Nano_Omni_Reasoning_V3"};
constexpr Needs kForms[] = {Needs::kExpertsApart};
constexpr Needs kVlHas[] = {Needs::kVideoEmbedder};
constexpr Needs kOmniHas[] = {Needs::kVideoEmbedder, Needs::kAudio, Needs::kSharedExpert, Needs::kExpertBias,
                              Needs::kLatent};

constexpr NumberOf kClassTokens = member<&ModelConfig::vision, &VisionConfig::class_tokens>;
constexpr LearnedSize kLearned[] = {
    {member<&ModelConfig::vision_tower, &TowerConfig::hidden>,
     "vision_model.radio_model.model.patch_generator.embedder.weight", 0},
    {member<&ModelConfig::vision, &VisionConfig::positions>,
     "vision_model.radio_model.model.patch_generator.pos_embed", 1},
    {kClassTokens, "vision_model.radio_model.model.patch_generator.cls_token.token", 0},
    {member<&ModelConfig::vision_tower, &TowerConfig::ffn>,
     "vision_model.radio_model.model.blocks.0.mlp.fc1.weight", 0},
    {nullptr, "vision_model.radio_model.model.blocks.{L}.norm1.weight", 0},
};

constexpr ConfigStep kVlConfig[] = {
    inside("llm_config", kHybridConfig),
    part("radio", 16),
};
constexpr ConfigStep kOmniConfig[] = {
    inside("llm_config", kHybridConfig),
    part("radio", 10),
    part("parakeet"),
};

constexpr Family kFamilies[] = {
    {.name = "nemotron_vl",
     .model_types = kVlTypes,
     .architecture = "NemotronH_Nano_VL_V2",
     .summary = "Nemotron-H with vision",
     .sections = kVlSections,
     .unread = kUnread,
     .conditions = kVlHas,
     .learned = kLearned,
     .config = kVlConfig,
     .facts = {"nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16", "fp8, nvfp4", "1, tp2"}},
    {.name = "nemotron_omni",
     .model_types = kOmniTypes,
     .architecture = "NemotronH_Nano_Omni_Reasoning_V3",
     .summary = "Nemotron-H with experts, vision and sound",
     .sections = kOmniSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kOmniHas,
     .learned = kLearned,
     .config = kOmniConfig,
     .facts = {"nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16", "", "1, tp2, tp2 ep4"}},
};

}  // namespace

std::span<const Family> nemotron_vl_families() { return kFamilies; }

}  // namespace mckpt::impl
