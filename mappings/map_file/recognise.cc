// The table of known names. A line is a place in the model, the last parts of names, and what the tensor is.
// A bias has the name of its weight; its rule and shape are beside those of the weight.
#include "mappings/map_file/recognise.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/map_file/name_kinds.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {
namespace {

enum class Place { kOnce, kLayer, kAttention, kMlp, kExperts, kShared };

struct Known {
  Place place;
  std::string_view names;     // last parts, between bars
  std::string_view megatron;  // without ".weight"
  std::string_view rule, shape;
  std::string_view bias_rule, bias_shape;  // "": such a layer has no bias
  int slot = 0;
  std::string_view doubt{};
};

constexpr std::string_view kJoinedQkv =
    "are the rows all queries, then all keys, then all values (qkv_joined)? If they are ordered by key-value group, its queries, its key, its value, as Megatron has them, the rule is column";
constexpr std::string_view kJoinedGate =
    "is gate above up, as the rule has it? Its shape would be the same with up above gate, or with alternating rows, for which there is no rule";
constexpr std::string_view kWhichIsGate =
    "is w1 the gate, which is activated, and w3 up? The shapes are the same";
constexpr std::string_view kJoinedExperts =
    "is gate above up in each expert (gated_expert)? If their rows alternate, the rule is gated_expert_interleaved_rows";
constexpr std::string_view kPositions =
    "Megatron has learned positions only if the run asks for them: is it so?";

constexpr std::string_view kQkv = "self_attention.linear_qkv", kProj = "self_attention.linear_proj";

// The first line that fits a name and its shape wins. fc1 and fc2 follow the module of the place.
constexpr Known kKnown[] = {
    {Place::kOnce, "embed_tokens|wte|embed_in|word_embeddings|tok_embeddings|embeddings",
     "embedding.word_embeddings", "vocab", "vocab hidden", "", ""},
    {Place::kOnce, "wpe|embed_positions|position_embeddings", "embedding.position_embeddings", "replicate",
     "", "", "", 0, kPositions},
    {Place::kOnce, "norm|ln_f|final_layer_norm|final_layernorm|norm_f|final_norm", "decoder.final_layernorm",
     "replicate", "hidden", "replicate", "hidden"},
    {Place::kOnce, "lm_head|embed_out|output", "output_layer", "vocab", "vocab hidden", "column", "vocab"},
    {Place::kAttention, "q_proj|wq|query|q_lin|query_proj", kQkv, "qkv", "q hidden", "qkv", "q", 0},
    {Place::kAttention, "k_proj|wk|key|k_lin|key_proj", kQkv, "qkv", "kv hidden", "qkv", "kv", 1},
    {Place::kAttention, "v_proj|wv|value|v_lin|value_proj", kQkv, "qkv", "kv hidden", "qkv", "kv", 2},
    {Place::kAttention, "qkv_proj|query_key_value|c_attn|Wqkv|wqkv|qkv|W_pack|att_proj|in_proj", kQkv,
     "qkv_joined", "qkv hidden", "qkv_joined", "qkv", 0, kJoinedQkv},
    {Place::kAttention, "o_proj|wo|out_proj|dense|c_proj|out_lin|proj", kProj, "row", "hidden attention",
     "replicate", "hidden"},
    {Place::kAttention, "q_norm|q_layernorm|query_layernorm", "self_attention.q_layernorm", "replicate",
     "head_dim", "replicate", "head_dim"},
    {Place::kAttention, "k_norm|k_layernorm|key_layernorm", "self_attention.k_layernorm", "replicate",
     "head_dim", "replicate", "head_dim"},
    {Place::kMlp, "gate_proj", "fc1", "gated_mlp", "ffn hidden", "gated_mlp", "ffn", 0},
    {Place::kMlp, "w1", "fc1", "gated_mlp", "ffn hidden", "gated_mlp", "ffn", 0, kWhichIsGate},
    {Place::kMlp, "w3", "fc1", "gated_mlp", "ffn hidden", "gated_mlp", "ffn", 1, kWhichIsGate},
    {Place::kMlp, "up_proj|fc1|c_fc|dense_h_to_4h|fc_in|wi", "fc1", "column", "ffn hidden", "column", "ffn"},
    {Place::kMlp, "gate_up_proj", "fc1", "gated_mlp_joined", "2*ffn hidden", "gated_mlp_joined", "2*ffn", 0,
     kJoinedGate},
    {Place::kMlp, "down_proj|fc2|c_proj|dense_4h_to_h|fc_out|w2|wo", "fc2", "row", "hidden ffn", "replicate",
     "hidden"},
    {Place::kMlp, "gate|router|layer|wg", "mlp.router", "replicate", "experts hidden", "replicate",
     "experts"},
    {Place::kMlp, "input_linear", "experts.fc1", "gated_expert", "experts 2*expert_ffn hidden", "", "", 0,
     kJoinedExperts},
    {Place::kMlp, "output_linear", "experts.fc2", "expert_row", "experts hidden expert_ffn", "", ""},
    {Place::kExperts, "gate_proj", "fc1", "gated_mlp", "expert_ffn hidden", "", "", 0},
    {Place::kExperts, "w1", "fc1", "gated_mlp", "expert_ffn hidden", "", "", 0, kWhichIsGate},
    {Place::kExperts, "w3", "fc1", "gated_mlp", "expert_ffn hidden", "", "", 1, kWhichIsGate},
    {Place::kExperts, "up_proj|fc1|c_fc", "fc1", "column", "expert_ffn hidden", "", ""},
    {Place::kExperts, "down_proj|fc2|c_proj|w2", "fc2", "row", "hidden expert_ffn", "", ""},
    {Place::kExperts, "gate_up_proj", "fc1", "gated_expert", "experts 2*expert_ffn hidden", "", "", 0,
     kJoinedExperts},
    {Place::kExperts, "gate_up_proj", "fc1", "gated_expert_transposed", "experts hidden 2*expert_ffn", "", "",
     0, kJoinedExperts},
    {Place::kExperts, "down_proj", "fc2", "expert_row", "experts hidden expert_ffn", "", ""},
    {Place::kExperts, "down_proj", "fc2", "expert_row_transposed", "experts expert_ffn hidden", "", ""},
    {Place::kShared, "gate_proj", "fc1", "gated_mlp", "shared_ffn hidden", "", "", 0},
    {Place::kShared, "up_proj", "fc1", "column", "shared_ffn hidden", "", ""},
    {Place::kShared, "input_linear|gate_up_proj", "fc1", "gated_mlp_joined", "2*shared_ffn hidden", "", "", 0,
     kJoinedGate},
    {Place::kShared, "down_proj|output_linear", "fc2", "row", "hidden shared_ffn", "", ""},
};

bool is_one_of(std::string_view name, std::string_view names) {
  while (true) {
    std::string_view one = names.substr(0, names.find('|'));
    if (one == name) return true;
    if (one.size() == names.size()) return false;
    names.remove_prefix(one.size() + 1);
  }
}

// A name taken apart: "model.layers.{L}." + "self_attn" + "q_proj" + "weight".
struct Parts {
  std::string_view front{}, inner{};  // before and after the layer's number; front alone for names without
  std::string_view leaf{};            // the last part before "weight" or "bias"
  bool bias = false, bare = false;    // bare: neither weight nor bias
  Place place = Place::kOnce;
};

bool has_part(std::string_view name, std::string_view names) {
  while (!name.empty()) {
    std::size_t dot = std::min(name.find('.'), name.size());
    if (is_one_of(name.substr(0, dot), names)) return true;
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return false;
}

Parts parts_of(std::string_view name) {
  Parts p;
  std::size_t at = name.find("{L}.");
  p.inner = at == name.npos ? name : name.substr(at + 4);
  p.front = at == name.npos ? "" : name.substr(0, at + 4);
  std::string_view stem = p.inner;
  p.bias = stem.ends_with(".bias");
  p.bare = !p.bias && !stem.ends_with(".weight");
  if (!p.bare) stem = stem.substr(0, stem.rfind('.'));
  std::size_t dot = stem.rfind('.');
  p.leaf = dot == stem.npos ? stem : stem.substr(dot + 1);
  std::string_view around = dot == stem.npos ? "" : stem.substr(0, dot);
  if (at == name.npos)
    p.place = Place::kOnce;
  else if (has_part(around, "shared_expert|shared_experts|shared_mlp"))
    p.place = Place::kShared;
  else if (has_part(around, "experts"))
    p.place = Place::kExperts;
  else if (has_part(around, "self_attn|self_attention|attention|attn"))
    p.place = Place::kAttention;
  else if (has_part(around, "mlp|feed_forward|ffn|block_sparse_moe|moe"))
    p.place = Place::kMlp;
  else
    p.place = Place::kLayer;
  return p;
}

std::optional<Shape> shape_if(std::string_view text, const ModelConfig& model) {
  try {
    return shape_of(text, model, model.text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool fits(const NameKind& kind, std::string_view text, const ModelConfig& model) {
  std::optional<Shape> shape = shape_if(text, model);
  return shape && kind.sized && std::ranges::equal(shape->dims(), kind.dims);
}

// The shape in words; sizes that several words have are the first of them, other sizes are numbers.
std::string words_of(const NameKind& kind, const ModelConfig& model) {
  std::string out;
  for (i64 size : kind.dims) {
    std::vector<std::string_view> words = words_for(size, model, model.text);
    out += cat(out.empty() ? "" : " ", words.empty() ? cat(size) : std::string(words[0]));
  }
  return out;
}

std::string shape_question(const NameKind& kind, std::string_view text, const ModelConfig& model) {
  std::optional<Shape> expected = shape_if(text, model);
  return cat("by its name it is ",
             expected ? cat("[", text, "] = ", to_string(*expected))
                      : cat("[", text, "], which config.json does not give"),
             ", but the tensor is ", dims_to_string(kind.dims), ": what is it?");
}

std::string open_question(const NameKind& kind, const ModelConfig& model) {
  std::string sizes;
  for (i64 size : kind.dims) {
    std::vector<std::string_view> words = words_for(size, model, model.text);
    if (!words.empty()) sizes += cat("; ", size, " is ", listed(words));
  }
  return cat(
      "which parameter is it, and how is it split? Name it in \"megatron\" with its rule, or list the tensor under \"unread\"",
      sizes);
}

// The module and the number of the expert, as Megatron writes them.
std::string leaf_of(const Known& known, const Parts& p) {
  bool of_experts = p.place == Place::kExperts || known.megatron.starts_with("experts.");
  std::string_view short_name = known.megatron.substr(known.megatron.starts_with("experts.") ? 8 : 0);
  if (short_name != "fc1" && short_name != "fc2") return cat(known.megatron, p.bias ? ".bias" : ".weight");
  std::string_view module = of_experts                  ? "mlp.experts"
                            : p.place == Place::kShared ? "mlp.shared_experts"
                                                        : "mlp";
  return cat(module, ".linear_", short_name, p.bias ? ".bias" : ".weight", of_experts ? "{E}" : "");
}

// `up` is the second half of a gated layer where a gate is beside it.
bool has_gate(std::string_view name, const KindNames& names) {
  std::string other(name);
  std::size_t at = other.rfind("up_proj");
  return at != other.npos && names.contains(other.replace(at, 7, "gate_proj"));
}

// What a known name is; nothing if the place or the name is not known. With a shape that does not fit, a
// question.
std::optional<Recognised> by_table(const NameKind& kind, const Parts& p, const KindNames& names,
                                   const ModelConfig& model) {
  std::optional<Recognised> unfit;
  for (const Known& known : kKnown) {
    if (known.place != p.place || !is_one_of(p.leaf, known.names)) continue;
    std::string_view rule = p.bias ? known.bias_rule : known.rule,
                     shape = p.bias ? known.bias_shape : known.shape;
    if (rule.empty()) continue;
    Recognised r{leaf_of(known, p), std::string(rule), std::string(shape), known.slot};
    if (r.rule == "column" && has_gate(kind.name, names)) r.rule = "gated_mlp", r.slot = 1;
    if (r.rule.starts_with("gated")) r.split = KeySplit::kSwiglu;
    if (r.leaf == "output_layer.weight") r.needs = Needs::kUntied;
    r.todo = known.doubt;
    if (shape.empty()) r.shape = words_of(kind, model);
    if (shape.empty() || fits(kind, shape, model)) return r;
    if (unfit) continue;
    r.todo = shape_question(kind, shape, model);
    r.shape = words_of(kind, model);
    unfit = std::move(r);
  }
  return unfit;
}

// The norms of a layer. After attention or before the MLP: the name of the norm between the two means either,
// and the other norms of the layer decide.
std::optional<Recognised> norm_of_layer(const NameKind& kind, const Parts& p, const KindNames& names,
                                        const ModelConfig& model) {
  auto beside = [&](std::string_view leaf) { return names.contains(cat(p.front, leaf, ".weight")); };
  bool sandwich = beside("pre_feedforward_layernorm") || beside("post_feedforward_layernorm");
  std::string todo;
  std::string_view module;
  bool post = false;
  if (is_one_of(p.leaf,
                "input_layernorm|ln_1|attention_norm|norm1|attention_layernorm|input_layer_norm|ln_attn")) {
    module = "self_attention.linear_qkv";
  } else if (is_one_of(p.leaf,
                       "ln_2|ffn_norm|norm2|feedforward_layernorm|pre_feedforward_layernorm|pre_ff_layernorm|pre_mlp_layernorm|ln_mlp") ||
             (is_one_of(p.leaf, "post_attention_layernorm|post_attention_norm") && !sandwich)) {
    module = "mlp.linear_fc1";
  } else if (is_one_of(p.leaf, "post_attention_layernorm|post_attention_norm")) {
    module = "self_attention.linear_proj", post = true;
    todo = "is this norm applied to the output of attention, as the norms beside it suggest?";
  } else if (is_one_of(p.leaf, "post_feedforward_layernorm")) {
    module = "mlp.linear_fc2", post = true;
    todo = "is this norm applied to the output of the MLP, as its name suggests?";
  } else {
    return std::nullopt;
  }
  bool moe = model.moe.experts > 0 && module == "mlp.linear_fc1";
  std::string_view what = p.bias ? "bias" : "weight";
  std::string leaf = moe    ? cat("pre_mlp_layernorm.", what)
                     : post ? cat(module, ".post_layernorm.", what)
                            : cat(module, ".layer_norm_", what);
  Recognised r{leaf, "replicate", "hidden"};
  r.todo = fits(kind, "hidden", model) ? todo : shape_question(kind, "hidden", model);
  return r;
}

}  // namespace

Recognised recognise(const NameKind& kind, const KindNames& names, const ModelConfig& model) {
  Parts p = parts_of(kind.name);
  Recognised out;
  if (is_one_of(p.leaf, "inv_freq")) {
    out.unread = "rotary frequencies, which Megatron computes";
  } else if (is_one_of(p.leaf, "e_score_correction_bias|expert_bias")) {
    out = {"mlp.router.expert_bias", "replicate", "experts"};
    out.buffer = true;
    if (!fits(kind, "experts", model)) out.todo = shape_question(kind, "experts", model);
  } else if (p.leaf == "sinks") {
    out = {"self_attention.core_attention.softmax_offset", "column", "heads"};
    if (!fits(kind, "heads", model)) out.todo = shape_question(kind, "heads", model);
  } else if (p.bare && p.place != Place::kExperts) {
    // A tensor that is neither the weight nor the bias of a module.
  } else if (auto norm = p.place == Place::kLayer ? norm_of_layer(kind, p, names, model) : std::nullopt) {
    out = *std::move(norm);
  } else if (auto known = by_table(kind, p, names, model)) {
    out = *std::move(known);
  }
  if (!out.leaf.empty() || !out.unread.empty()) return out;
  out.shape = words_of(kind, model);
  out.todo = open_question(kind, model);
  return out;
}

}  // namespace mckpt::impl
