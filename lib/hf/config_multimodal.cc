// Readers of families with a vision or audio tower that Megatron takes over from Hugging Face as it is: the
// language model is read as that of an older family, the tower by a reader of config_towers.h.
//
//   qwen2_5_vl = qwen2 + its own tower          mistral3       = llama + Pixtral
//   qwen2_audio = qwen2 + Whisper's encoder     qwen3_omni_moe = qwen3_moe + the tower of Qwen3-VL + an audio encoder
//   minimax_m3_vl = its own decoder (sparse attention) + its own tower
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "hf/config_readers.h"
#include "hf/config_towers.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kTied = "tie_word_embeddings";

// The flag at the top, or where the top has none that of the language model.
bool read_tied(const ConfigFields& top, const ConfigFields& text) {
  return top.has(kTied) ? top.flag_or(kTied, false) : text.flag_or(kTied, false);
}

// One of two words for each layer; all are the first word if the entry is absent.
std::vector<bool> layers_with(const ConfigFields& c, std::string_view key, i64 layers,
                              std::string_view without, std::string_view with) {
  std::vector<std::string> words = c.texts(key);
  if (std::ssize(words) != layers)
    throw c.error(key, "does not have one entry for each layer").expected(layers).found(words.size());
  std::vector<bool> out;
  for (const std::string& word : words) {
    if (word != without && word != with)
      throw c.error(key, "names a kind of layer that is not known")
          .expected(cat(without, " or ", with))
          .found(escaped(word));
    out.push_back(word == with);
  }
  return out;
}

// The older spelling of the same: 0 or 1 for each layer.
std::vector<bool> flagged_layers(const ConfigFields& c, std::string_view key, i64 layers) {
  std::vector<i64> flags = c.numbers_or_none(key);
  if (std::ssize(flags) != layers)
    throw c.error(key, "does not have one entry for each layer").expected(layers).found(flags.size());
  std::vector<bool> out;
  for (i64 flag : flags) out.push_back(flag != 0);
  return out;
}

}  // namespace

// Files of the hub have the language model's entries at the top, those that transformers 5 writes under
// text_config.
void read_qwen2_5_vl(const ConfigFields& top, ModelConfig& m) {
  ConfigFields text = top.has("text_config") ? top.object("text_config") : top;
  read_qwen2(text, m);
  m.tied = read_tied(top, text);
  read_qwen2_5_vision(top.object("vision_config"), m);
}

void read_qwen2_audio(const ConfigFields& top, ModelConfig& m) {
  ConfigFields text = top.object("text_config").with_defaults(R"({"vocab_size": 151936, "hidden_size": 4096,
      "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32})");
  read_qwen2(text, m);
  m.tied = read_tied(top, text);
  read_audio(top.object("audio_config"), m);
}

// The talker and the decoder of its codes are models of their own beside the thinker, and Megatron has
// neither.
void read_qwen3_omni_moe(const ConfigFields& top, ModelConfig& m) {
  if (top.flag_or("enable_audio_output", true))
    throw top
        .unsupported(
            "enable_audio_output",
            "is not false: the model has a talker, which Megatron's model of this family does not have")
        .help("save the thinker alone, with enable_audio_output false");
  ConfigFields c = top.object("thinker_config"), text = c.object("text_config");
  read_qwen3_moe(text, m);
  m.mtp = {};
  m.tied = read_tied(c, text);
  read_qwen_vision(c, m, true);
  ConfigFields audio = c.object("audio_config");
  read_audio(audio, m);
  m.audio.channels = audio.size_or("downsample_hidden_size", 480);
  m.audio.out_hidden = audio.size_or("output_dim", 3584);
}

// A projector that reads several layers of the tower is wider than its one width.
void read_mistral3(const ConfigFields& top, ModelConfig& m) {
  ConfigFields text = top.object("text_config");
  read_llama(text, m);
  m.tied = read_tied(top, text);
  read_pixtral(top, m);
  if (top.flag_or("multimodal_projector_bias", false))
    throw top.unsupported("multimodal_projector_bias", "is true; released models have no biases there");
  if (const JsonValue* layer = top.find("vision_feature_layer"); layer && !layer->is_integer())
    throw top.unsupported("vision_feature_layer", "is not one layer").found(layer->summary());
}

// Files of the hub have few entries of the language model: those of the 4B model are the defaults of the
// class.
void read_gemma3(const ConfigFields& top, ModelConfig& m) {
  ConfigFields text = top.object("text_config").with_defaults(R"({"vocab_size": 262208, "hidden_size": 2304,
      "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
      "head_dim": 256})");
  read_gemma3_text(text, m);
  m.tied = top.flag_or(kTied, true);
  read_siglip(top.object("vision_config"), m);
}

void read_glm4v_moe(const ConfigFields& top, ModelConfig& m) {
  ConfigFields text = top.object("text_config");
  read_glm4_moe(text, m);
  m.mtp = {};
  m.tied = read_tied(top, text);
  read_glm4v_vision(top.object("vision_config"), m);
}

void read_minimax_m3(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c = top.object("text_config");
  read_text(c, m, {.kv_groups = 4, .head_dim = 128});
  m.text.qk_norm = true;
  m.zero_centered_norms = true;
  m.text.ffn = c.size_or("dense_intermediate_size", 12288);
  m.tied = read_tied(top, c);
  i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {Mixer::kAttention, Ffn::kMoe});
  std::vector<bool> moe(static_cast<std::size_t>(layers), true), sparse(static_cast<std::size_t>(layers));
  if (c.has("mlp_layer_types"))
    moe = layers_with(c, "mlp_layer_types", layers, "dense", "sparse");
  else if (c.has("moe_layer_freq"))
    moe = flagged_layers(c, "moe_layer_freq", layers);
  ConfigFields old = c.has("sparse_attention_config") ? c.object("sparse_attention_config") : c;
  if (c.has("layer_types"))
    sparse = layers_with(c, "layer_types", layers, "full_attention", "minimax_m3_sparse");
  else if (old.has("sparse_attention_freq"))
    sparse = flagged_layers(old, "sparse_attention_freq", layers);
  for (i64 n = 0; n < layers; n++)
    m.text.layers[n] = {sparse[n] ? Mixer::kSparseAttention : Mixer::kAttention,
                        moe[n] ? Ffn::kMoe : Ffn::kDense};
  m.indexer.heads =
      c.has("index_n_heads") ? c.size("index_n_heads") : old.size_or("sparse_num_index_heads", 4);
  m.indexer.head_dim =
      c.has("index_head_dim") ? c.size("index_head_dim") : old.size_or("sparse_index_dim", 128);
  m.moe.experts = read_experts(c, {"num_local_experts"});
  m.moe.ffn = c.size("intermediate_size");
  m.moe.shared_ffn = c.count_or("shared_intermediate_size", 3072);
  m.moe.expert_bias = true;
  check_layer_experts(c, m);
  read_minimax_vision(top, m);
}

}  // namespace mckpt::impl
