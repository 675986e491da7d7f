// The table of the functions by name, and those that only refuse something.
#include "hf/config/named_parts.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/towers.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// A tower's reader without a number.
template <void (*kRead)(const ConfigFields&, ModelConfig&)>
void tower(const ConfigFields& c, ModelConfig& m, i64) {
  kRead(c, m);
}
void qwen_vision(const ConfigFields& c, ModelConfig& m, i64 deepstack) {
  read_qwen_vision(c, m, deepstack != 0);
}

void refuse_talker(const ConfigFields& c, ModelConfig&, i64) {
  if (c.flag_or("enable_audio_output", true))
    throw c
        .unsupported(
            "enable_audio_output",
            "is not false: the model has a talker, which Megatron's model of this family does not have")
        .help("save the thinker alone, with enable_audio_output false");
}

// Behind steps that are for some types of language models: none of them was for this one.
void need_decoder(const ConfigFields& c, ModelConfig& m, i64) {
  if (m.text.hidden == 0)
    throw c.unsupported("model_type", "is a language model that this family does not have")
        .found(escaped(c.text_or("model_type", "")));
}

// A projector that reads several layers of the tower is wider than its one width.
void one_feature_layer(const ConfigFields& c, ModelConfig&, i64) {
  if (c.flag_or("multimodal_projector_bias", false))
    throw c.unsupported("multimodal_projector_bias", "is true; released models have no biases there");
  if (const JsonValue* layer = c.find("vision_feature_layer"); layer && !layer->is_integer())
    throw c.unsupported("vision_feature_layer", "is not one layer").found(layer->summary());
}

// transformers' class makes the layers of the number in sliding_window_pattern if the config does not list
// them, which it cannot do without windows: no program has such a model.
void need_exaone_layers(const ConfigFields& c, ModelConfig&, i64) {
  if (c.has("layer_types")) return;
  const JsonValue* every = c.find("sliding_window_pattern");
  const bool number =
      every ? every->is_integer() && every->integer("") > 0 : !c.is_null("sliding_window_pattern");
  if (number && !c.is_null("sliding_window")) return;
  throw c.error("layer_types", "is missing, and without windows in every few layers transformers needs it")
      .help("list the layers: \"full_attention\" for each layer of a model without windows");
}

struct Row {
  std::string_view name;
  NamedPart read;
};

constexpr Row kParts[] = {
    {"shared_gate", read_shared_gate},
    {"sparse_layers", read_sparse_layers},
    {"experts_everywhere", read_experts_everywhere},
    {"gdn_layers", read_gdn_layers},
    {"latent_head_dim", read_latent_head_dim},
    {"head_dim_of_hidden", read_head_dim_of_hidden},
    {"every_few_experts", read_every_few_experts},
    {"low_rank_queries", read_low_rank_queries},
    {"indexer_types", read_indexer_types},
    {"as_many_groups", read_as_many_groups},
    {"interval_layers", read_interval_layers},
    {"first_dense_layers", read_first_dense_layers},
    {"mamba_head_dim", read_mamba_head_dim},
    {"minimax_layers", read_minimax_layers},
    {"ernie_pools", read_ernie_pools},
    {"llama4_layers", read_llama4_layers},
    {"hybrid_layers", read_hybrid_layers},
    {"step_layers", read_step_layers},
    {"mimo_v2_layers", read_mimo_v2_layers},
    {"gemma4_experts", read_gemma4_experts},
    {"gemma4_layers", read_gemma4_layers},
    {"deci_layers", read_deci_layers},
    {"deepseek_v4_layers", read_deepseek_v4_layers},
    {"qwen4_layers", read_qwen4_layers},
    {"known_decoder", need_decoder},
    {"no_talker", refuse_talker},
    {"exaone_layers", need_exaone_layers},
    {"one_feature_layer", one_feature_layer},
    {"qwen_vision", qwen_vision},
    {"qwen2_5_vision", tower<read_qwen2_5_vision>},
    {"exaone4_5_vision", tower<read_exaone4_5_vision>},
    {"pixtral", tower<read_pixtral>},
    {"siglip", tower<read_siglip>},
    {"gemma4_vision", tower<read_gemma4_vision>},
    {"gemma4_audio", tower<read_gemma4_audio>},
    {"glm4v_vision", tower<read_glm4v_vision>},
    {"minimax_vision", tower<read_minimax_vision>},
    {"ernie_vision", tower<read_ernie_vision>},
    {"internvit", tower<read_internvit>},
    {"llama4_vision", tower<read_llama4_vision>},
    {"muse_vision", tower<read_muse_vision>},
    {"radio", read_radio},
    {"moonvit", tower<read_moonvit>},
    {"step_vision", tower<read_step_vision>},
    {"audio", tower<read_audio>},
    {"parakeet", tower<read_parakeet>},
};

}  // namespace

NamedPart named_part(std::string_view name) {
  for (const Row& row : kParts)
    if (row.name == name) return row.read;
  throw Error(Code::kInternal, cat("no function of configs has the name ", name));
}

}  // namespace mckpt::impl
