// Qwen3.5 and 3.6, dense and with experts, with the vision tower or as the language model alone: gated delta
// nets and gated attention as in Qwen3-Next, with flat input projections.
//
//   with vision       model.language_model.layers.0. ...    language_model.decoder.layers.0. ...
//                     model.visual.blocks.0. ...            vision_model.decoder.layers.0. ...
//   language alone    model.layers.0. ...                   decoder.layers.0. ...
//
// Peculiar to this family: the vision tower has no deepstack mergers (Qwen3-VL has them), MTP is stored
// without the prefix of the language model ("mtp."), and fused experts are the usual form.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"
#include "mappings/models/gdn.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {
    .attention = kAttentionRows, .gdn = kFlatGdnRows, .dense = kDenseRows, .moe = kQwenMoeRows};
constexpr std::string_view kVisionLayers = "vision_model.decoder.layers.{L}.";
constexpr std::string_view kVisualBlocks = "model.visual.blocks.{L}.";
constexpr std::string_view kMerger = "vision_model.merger.", kVisualMerger = "model.visual.merger.";
constexpr std::string_view kLanguage = "language_model.", kText = "model.language_model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "model.language_model.layers.{L}.";
constexpr std::string_view kMtp = "language_model.mtp.layers.{M}.";
constexpr std::string_view kMtpLayer = "language_model.mtp.layers.{M}.mtp_model_layer.";

constexpr Section kVlSections[] = {
    {Scope::kOnce, "vision_model.", "model.visual.", kVisionFrontRows, nullptr, Stage::kFirst,
     Tower::kVision},
    {Scope::kLayers, kVisionLayers, kVisualBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kMerger, kVisualMerger, kMergerRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, kMtp, "mtp.", kQwenMtpHeadRows, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, kMtpLayer, "mtp.layers.{M}.", {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, kMtp, "mtp.", kQwenMtpTailRows, nullptr, Stage::kMtp},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr auto kTextSections = qwen_sections(kLayer);

constexpr Unread kVlUnread[] = {
    {"lm_head.weight", "model.language_model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};
constexpr Unread kTextUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kVl[] = {"qwen3_5"}, kPlain[] = {"qwen3_5_text"};
constexpr std::string_view kVlMoe[] = {"qwen3_5_moe"}, kTextMoe[] = {"qwen3_5_moe_text"};
constexpr Needs kForms[] = {Needs::kExpertsFused, Needs::kExpertsApart, Needs::kExpertsHub};
constexpr Needs kDenseHas[] = {Needs::kQkNorm};
constexpr Needs kMoeHas[] = {Needs::kQkNorm, Needs::kSharedExpert, Needs::kSharedGate};

constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 4, .head_dim = 256}),
    all_of(kGatedDecoder),
    all_of(kDenseFfn),
    mtp(1),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    part("qwen_vision"),
};
constexpr ConfigStep kMoeConfig[] = {
    inside("text_config", kQwen35MoeConfig),
    part("qwen_vision"),
};

constexpr Family kFamilies[] = {
    {.name = "qwen3_5",
     .model_types = kVl,
     .architecture = "Qwen3_5ForConditionalGeneration",
     .summary = "Qwen3.5 to 3.8, dense, with vision",
     .sections = kVlSections,
     .unread = kVlUnread,
     .conditions = kDenseHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen3.5-27B, Qwen/Qwen3.6-27B, Qwen/Qwen3.8-27B", "fp8 blocks", "1, tp2"}},
    {.name = "qwen3_5_moe",
     .model_types = kVlMoe,
     .architecture = "Qwen3_5MoeForConditionalGeneration",
     .summary = "Qwen3.5 and 3.6 with experts and vision",
     .sections = kVlSections,
     .unread = kVlUnread,
     .expert_forms = kForms,
     .conditions = kMoeHas,
     .config = kMoeConfig,
     .facts = {"Qwen/Qwen3.5-35B-A3B, Qwen/Qwen3.6-35B-A3B", "fp8 blocks", "tp2 ep4"}},
    {.name = "qwen3_5_text",
     .model_types = kPlain,
     .architecture = "Qwen3_5ForCausalLM",
     .summary = "Qwen3.5, dense, without vision",
     .sections = kTextSections,
     .unread = kTextUnread,
     .conditions = kDenseHas,
     .config = kTextConfig,
     .facts = {"text models of Qwen3.5", "", ""}},
    {.name = "qwen3_5_moe_text",
     .model_types = kTextMoe,
     .architecture = "Qwen3_5MoeForCausalLM",
     .summary = "Qwen3.5 to 3.8 with experts, without vision",
     .sections = kTextSections,
     .unread = kTextUnread,
     .expert_forms = kForms,
     .conditions = kMoeHas,
     .config = kQwen35MoeConfig,
     .facts = {"Qwen/Qwen3.8-2.4T-A95B, text models of Qwen3.5 with experts", "",
               "1, tp2, tp2 cp2, tp4 ep2"}},
};

}  // namespace

std::span<const Family> qwen3_5_families() { return kFamilies; }

}  // namespace mckpt::impl
