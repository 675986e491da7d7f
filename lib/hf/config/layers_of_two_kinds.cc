// Families whose layers of sliding attention have other heads than their layers of full attention, and lists
// that say which layers have experts:
//
//   Step-3.5         layer_types, attention_other_setting         "moe_layers_enum": "3,4,5"
//   MiMo-V2-Flash    hybrid_layer_pattern, swa_num_key_value_heads    "moe_layer_freq": [0, 1, 1]
//
// The sizes of sliding layers are ModelConfig::layer_sizes[0].
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "hf/config/parts.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

constexpr i32 kSlidingSizes = 1;
constexpr i64 kMostDepths = 16;

Error wrong_length(const ConfigFields& c, std::string_view key, i64 layers, i64 found) {
  return c.error(key, "does not have one entry for each layer").expected(layers).found(found);
}

// One of two answers for each layer: 0 or 1 under `flags`, as releases have it, or one of two words under
// `words`, as transformers writes it. Where both are there, the words are: transformers keeps the flags that
// it once read, builds the model by the words, and saves both.
struct TwoKinds {
  std::string_view flags, words, zero, one;
};
constexpr TwoKinds kSliding = {"hybrid_layer_pattern", "layer_types", "full_attention", "sliding_attention"};
constexpr TwoKinds kSparse = {"moe_layer_freq", "mlp_layer_types", "dense", "sparse"};

bool is_one(const ConfigFields& c, const TwoKinds& kinds, std::string_view word) {
  if (word != kinds.zero && word != kinds.one)
    throw c.error(kinds.words, "names a kind of layer that is not known")
        .expected(cat(kinds.zero, " or ", kinds.one))
        .found(escaped(word));
  return word == kinds.one;
}

std::vector<bool> kinds_of_layers(const ConfigFields& c, const TwoKinds& kinds, i64 layers) {
  std::vector<bool> out;
  const bool words = c.has(kinds.words);
  if (words)
    for (const std::string& word : c.texts(kinds.words)) out.push_back(is_one(c, kinds, word));
  else if (!c.has(kinds.flags))
    throw c.error(kinds.flags, "is missing").expected("0 or 1 for each layer");
  else
    for (i64 flag : c.numbers_or_none(kinds.flags)) {
      if (flag != 0 && flag != 1)
        throw c.error(kinds.flags, "has another entry").expected("0 or 1").found(flag);
      out.push_back(flag == 1);
    }
  if (std::ssize(out) != layers)
    throw wrong_length(c, words ? kinds.words : kinds.flags, layers, std::ssize(out));
  return out;
}

// ---- Step-3.5

// Whether each layer, those for prediction behind the decoder's too, is a sliding one. The list of a release
// goes on with the layers for prediction, or `mtp_layer_types` has those; a layer that is in no list has full
// attention.
std::vector<bool> step_sliding(const ConfigFields& c, const ModelConfig& m, i64 layers) {
  std::vector<std::string> types;
  if (c.has("layer_types")) types = c.texts("layer_types");
  const i64 listed = std::ssize(types), most = m.mtp.stated ? m.mtp.depths : kMostDepths;
  if (listed != 0 && (listed < layers || listed > layers + most))
    throw wrong_length(c, "layer_types", layers, listed);
  types.resize(static_cast<std::size_t>(std::max(listed, layers)), "full_attention");
  if (c.has("mtp_layer_types"))
    for (std::string& type : c.texts("mtp_layer_types")) types.push_back(std::move(type));
  std::vector<bool> sliding;
  for (const std::string& type : types) sliding.push_back(is_one(c, kSliding, type));
  return sliding;
}

// transformers writes the number of heads alone, which is all that differs. The entries of another kind of
// layer are not read, as Megatron-Bridge does not.
TowerConfig step_sliding_sizes(const ConfigFields& c, const TowerConfig& full) {
  constexpr std::string_view kOther = "attention_other_setting", kHeads = "num_sliding_attention_heads";
  TowerConfig t = full;
  t.layers.clear();
  if (c.has(kHeads)) {
    t.heads = c.size(kHeads);
    must_divide(c, kHeads, t.heads, "num_key_value_heads", t.kv_groups);
    return t;
  }
  t.heads = 96, t.kv_groups = 8, t.head_dim = 128;
  if (!c.has(kOther)) return t;
  const ConfigFields other = c.object(kOther);
  if (other.text_or("attention_type", "") != "sliding_attention") return t;
  t.heads = other.size_or("num_attention_heads", t.heads);
  t.kv_groups = other.size_or("num_attention_groups", t.kv_groups);
  t.head_dim = other.size_or("head_dim", t.head_dim);
  must_divide(other, "num_attention_heads", t.heads, "num_attention_groups", t.kv_groups);
  return t;
}

// The layers with experts as a text, "3,4,5", or as a list. Numbers beyond the decoder are of layers that
// have none.
std::vector<i64> step_sparse_layers(const ConfigFields& c, i64 layers) {
  constexpr std::string_view kKey = "moe_layers_enum";
  std::vector<i64> out;
  if (c.has(kSparse.words)) {
    const std::vector<bool> sparse =
        kinds_of_layers(c, {"", kSparse.words, kSparse.zero, kSparse.one}, layers);
    for (i64 n = 0; n < layers; n++)
      if (sparse[n]) out.push_back(n);
    return out;
  }
  const JsonValue* value = c.find(kKey);
  if (!value) {
    for (i64 n = 3; n < 45; n++) out.push_back(n);
    return out;
  }
  if (!value->is(JsonType::kString)) return c.numbers_or_none(kKey);
  std::string number;
  bool ended = false;  // by a blank behind it
  for (char letter : cat(c.text_or(kKey, ""), ",")) {
    if (letter >= '0' && letter <= '9' && number.size() < 9 && !ended) {
      number += letter;
    } else if (letter == ',') {
      if (!number.empty()) out.push_back(std::stoll(number));
      number.clear(), ended = false;
    } else if (letter == ' ') {
      ended = !number.empty();
    } else {
      throw c.error(kKey, "is not a list of layers").expected("numbers and commas").found(value->summary());
    }
  }
  return out;
}

// Layers for prediction are dense. On a later pipeline stage Megatron looks for their kind at another place
// of the list.
void read_step_depths(const std::vector<bool>& sliding, i64 layers, MtpConfig& mtp) {
  for (std::size_t n = static_cast<std::size_t>(layers); n < sliding.size(); n++)
    mtp.sizes_of_depths.push_back(sliding[n] ? kSlidingSizes : 0);
  mtp.one_stage = std::ranges::count(mtp.sizes_of_depths, kSlidingSizes) > 0;
  if (!mtp.one_stage) return mtp.sizes_of_depths.clear();
  mtp.sizes_of_depths.resize(std::max<std::size_t>(mtp.sizes_of_depths.size(), kMostDepths));
}

// ---- MiMo-V2-Flash

// Megatron's model has these numbers once.
void need_same(const ConfigFields& c, std::string_view key, i64 as) {
  if (i64 n = c.size_or(key, as); n != as)
    throw c.unsupported(key, "is another number than full attention has; Megatron's model has one for both")
        .expected(as)
        .found(n);
}

}  // namespace

void read_step_layers(const ConfigFields& c, ModelConfig& m, i64) {
  must_divide(c, "num_attention_heads", m.text.heads, "num_attention_groups", m.text.kv_groups);
  const i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {});
  const std::vector<bool> sliding = step_sliding(c, m, layers);
  m.layer_sizes = {step_sliding_sizes(c, m.text)};
  m.listed_layers = m.layers_apart = true;
  for (i64 n = 0; n < layers; n++) m.text.layers[n].sizes = sliding[n] ? kSlidingSizes : 0;
  for (i64 n : step_sparse_layers(c, layers))
    if (n >= 0 && n < layers) m.text.layers[n].ffn = Ffn::kMoe;
  read_step_depths(sliding, layers, m.mtp);
}

// The number of layers for prediction is in no entry.
void read_mimo_v2_layers(const ConfigFields& c, ModelConfig& m, i64) {
  const i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {});
  need_same(c, "swa_num_attention_heads", m.text.heads);
  need_same(c, "swa_head_dim", m.text.head_dim);
  need_same(c, "swa_v_head_dim", m.text.value_dim);
  TowerConfig sliding = m.text;
  sliding.layers.clear();
  sliding.sinks = true;
  // The class of transformers has no entry for it.
  sliding.kv_groups = c.size_or("swa_num_key_value_heads", 2 * m.text.kv_groups);
  must_divide(c, "num_attention_heads", m.text.heads, "swa_num_key_value_heads", sliding.kv_groups);
  m.layer_sizes = {std::move(sliding)};
  const std::vector<bool> slides = kinds_of_layers(c, kSliding, layers);
  const std::vector<bool> sparse = kinds_of_layers(c, kSparse, layers);
  for (i64 n = 0; n < layers; n++)
    m.text.layers[n] = {Mixer::kAttention, sparse[n] ? Ffn::kMoe : Ffn::kDense,
                        slides[n] ? kSlidingSizes : 0};
  m.no_context_parallel = m.tp_within_groups = m.listed_layers = m.layers_apart = true;
  m.mtp.stated = false;
  m.mtp.layers = {{Mixer::kAttention, Ffn::kDense, kSlidingSizes}};
  if (i64 n = c.count_or("n_shared_experts", 0); n > 0)
    throw c.unsupported("n_shared_experts", "is not 0; Megatron's model of this family has no shared experts")
        .found(n);
}

}  // namespace mckpt::impl
