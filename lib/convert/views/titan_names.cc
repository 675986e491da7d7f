// The table is at the top: a name of torchtitan, of any of its versions, and what the folder has for it. A
// new spelling is a row; a new model is a line of kModels and its rows.
#include "convert/views/titan_names.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/config_json.h"
#include "io/store/store.h"
#include "mappings/family.h"

namespace mckpt::impl {
namespace {

// What becomes of the items.
enum class Move : u8 {
  kCopy,
  kQuery,    // rows of heads; Llama 3 has another order of them
  kKey,      // the same, with the number of groups instead of heads
  kQkv,      // queries, keys and values of one group after the other; "qkv" in the name is q, k or v
  kExperts,  // [experts, out, in]: {E} in the name is the expert
  kNone,     // a buffer that the folder does not have
};

// One name behind "layers.{L}." and what the folder has behind "model.layers.{L}.", or whole names.
struct Row {
  std::string_view titan, disk;
  Move move = Move::kCopy;
};

constexpr Row kOnce[] = {
    {"tok_embeddings.weight", "model.embed_tokens.weight"},
    {"norm.weight", "model.norm.weight"},
    {"lm_head.weight", "lm_head.weight"},
    {"output.weight", "lm_head.weight"},  // before 2026, and Meta's Llama
    {"freqs_cis", "", Move::kNone},
    {"rope.freqs", "", Move::kNone},
    {"rope_cache", "", Move::kNone},
};
constexpr Row kEveryLayer[] = {
    {"attention_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attention.wo.weight", "self_attn.o_proj.weight"},
    {"feed_forward.w1.weight", "mlp.gate_proj.weight"},
    {"feed_forward.w3.weight", "mlp.up_proj.weight"},
    {"feed_forward.w2.weight", "mlp.down_proj.weight"},
};
constexpr Row kAttention[] = {
    {"attention.qkv_linear.wq.weight", "self_attn.q_proj.weight", Move::kQuery},
    {"attention.qkv_linear.wk.weight", "self_attn.k_proj.weight", Move::kKey},
    {"attention.qkv_linear.wv.weight", "self_attn.v_proj.weight"},
    {"attention.qkv_linear.wqkv.weight", "self_attn.{P}_proj.weight", Move::kQkv},
    {"attention.wq.weight", "self_attn.q_proj.weight", Move::kQuery},  // without qkv_linear: older
    {"attention.wk.weight", "self_attn.k_proj.weight", Move::kKey},
    {"attention.wv.weight", "self_attn.v_proj.weight"},
};
constexpr Row kHeadNorms[] = {
    {"attention.q_norm.weight", "self_attn.q_norm.weight"},
    {"attention.k_norm.weight", "self_attn.k_norm.weight"},
};
constexpr Row kLatentAttention[] = {
    {"attention.wq.weight", "self_attn.q_proj.weight"},  // of models without a low-rank query
    {"attention.wq_a.weight", "self_attn.q_a_proj.weight"},
    {"attention.q_norm.weight", "self_attn.q_a_layernorm.weight"},
    {"attention.wq_b.weight", "self_attn.q_b_proj.weight"},
    {"attention.wkv_a.weight", "self_attn.kv_a_proj_with_mqa.weight"},
    {"attention.kv_norm.weight", "self_attn.kv_a_layernorm.weight"},
    {"attention.wkv_b.weight", "self_attn.kv_b_proj.weight"},
};
constexpr Row kExperts[] = {
    {"moe.router.gate.weight", "mlp.gate.weight"},
    {"moe.routed_experts.inner_experts.w1_EFD", "mlp.experts.{E}.gate_proj.weight", Move::kExperts},
    {"moe.routed_experts.inner_experts.w3_EFD", "mlp.experts.{E}.up_proj.weight", Move::kExperts},
    {"moe.routed_experts.inner_experts.w2_EDF", "mlp.experts.{E}.down_proj.weight", Move::kExperts},
    {"moe.experts.w1_EFD", "mlp.experts.{E}.gate_proj.weight", Move::kExperts},  // older
    {"moe.experts.w3_EFD", "mlp.experts.{E}.up_proj.weight", Move::kExperts},
    {"moe.experts.w2_EDF", "mlp.experts.{E}.down_proj.weight", Move::kExperts},
    {"moe.experts.w1", "mlp.experts.{E}.gate_proj.weight", Move::kExperts},  // older still
    {"moe.experts.w3", "mlp.experts.{E}.up_proj.weight", Move::kExperts},
    {"moe.experts.w2", "mlp.experts.{E}.down_proj.weight", Move::kExperts},
    {"moe.tokens_per_expert", "", Move::kNone},
    {"moe.tokens_per_expert_E", "", Move::kNone},
};
constexpr Row kSharedExperts[] = {
    {"moe.expert_bias_E", "mlp.gate.e_score_correction_bias"},
    {"moe.expert_bias", "mlp.gate.e_score_correction_bias"},  // older
    {"moe.shared_experts.w1.weight", "mlp.shared_experts.gate_proj.weight"},
    {"moe.shared_experts.w3.weight", "mlp.shared_experts.up_proj.weight"},
    {"moe.shared_experts.w2.weight", "mlp.shared_experts.down_proj.weight"},
};
// Behind "mtp_layers.{N}." in addition: the folder has these layers behind those of the decoder.
constexpr Row kMtp[] = {
    {"enorm.weight", "enorm.weight"},
    {"hnorm.weight", "hnorm.weight"},
    {"eh_proj.weight", "eh_proj.weight"},
    {"mtp_norm.weight", "shared_head.norm.weight"},
};

// A model: torchtitan's name of it, the family of its config, and the rows of its layers.
struct Model {
  std::string_view titan, family;
  std::span<const Row> layer[4];
  bool pairs = false;  // rows of queries and keys are turned in pairs
  bool mtp = false;
};
constexpr Model kModels[] = {
    {"llama3", "llama", {kEveryLayer, kAttention}, true},
    {"qwen3", "qwen3", {kEveryLayer, kAttention, kHeadNorms}},
    {"qwen3_moe", "qwen3_moe", {kEveryLayer, kAttention, kHeadNorms, kExperts}},
    {"deepseek_v3", "deepseek_v3", {kEveryLayer, kLatentAttention, kExperts, kSharedExperts}, false, true},
};

constexpr std::string_view kLayers = "layers.", kMtpLayers = "mtp_layers.";

// "layers.12.moe.w" -> 12 and "moe.w"; nothing for another name.
struct InLayer {
  i64 number = 0;
  std::string_view behind;
};
std::optional<InLayer> in_layer(std::string_view name, std::string_view list) {
  if (!name.starts_with(list)) return std::nullopt;
  InLayer out;
  const char* first = name.data() + list.size();
  auto [end, error] = std::from_chars(first, name.data() + name.size(), out.number);
  if (error != std::errc() || *first == '-') return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (!name.starts_with('.') || out.number >= i64{1} << 31) return std::nullopt;
  out.behind = name.substr(1);
  return out;
}

const Row* find(std::span<const Row> rows, std::string_view titan) {
  auto row = std::ranges::find(rows, titan, &Row::titan);
  return row == rows.end() ? nullptr : &*row;
}

std::string filled(std::string_view pattern, std::string_view placeholder, std::string_view by) {
  std::string out(pattern);
  out.replace(out.find(placeholder), placeholder.size(), by);
  return out;
}

// The model by its config, or by names that only one model has.
const Model& model_of(const Store& store, std::span<const NamedTensor> names, const HfConfig* config) {
  auto any = [&](std::string_view part) {
    return std::ranges::any_of(names, [&](const NamedTensor& n) { return n.name.find(part) != n.name.npos; });
  };
  std::string_view family = config                       ? config->family->name
                            : any(".attention.wkv_a.")   ? "deepseek_v3"
                            : !any(".attention.q_norm.") ? "llama"
                            : any(".moe.")               ? "qwen3_moe"
                                                         : "qwen3";
  for (const Model& m : kModels)
    if (m.family == family) return m;
  throw Error(Code::kUnknownModel, "torchtitan's names of this model are not known")
      .file(store.root())
      .expected("llama, qwen3, qwen3_moe or deepseek_v3")
      .found(family);
}

// The translation of one store; run() is called once.
class Translation {
 public:
  Translation(const Store& store, std::span<const NamedTensor> names, const HfConfig* config)
      : store_(store), names_(names), config_(config), model_(model_of(store, names, config)) {
    out_.model = model_.titan;
    for (const NamedTensor& n : names)
      if (auto layer = in_layer(n.name, kLayers)) layers_ = std::max(layers_, layer->number + 1);
    if (config) layers_ = std::ssize(config->model.text.layers);
  }

  TitanTensors run() {
    for (const NamedTensor& n : names_)
      if (!add_named(n)) unknown_.push_back(std::string(store_.name(n.tensor)));
    if (!unknown_.empty())
      throw Error(Code::kUnaccounted, cat("torchtitan's ", model_.titan, " has no ",
                                          unknown_.size() == 1 ? "tensor" : "tensors", " of these names"))
          .file(store_.root())
          .each_note(unknown_)
          .help("docs/formats/own_names.md has the names that are known");
    return std::move(out_);
  }

 private:
  bool add_named(const NamedTensor& n);
  void add(i64 tensor, const Row& row, std::string_view front);
  void add_heads(i64 tensor, std::string name, i64 heads, i64 first_head, i64 stride, i64 each, bool pairs);
  void add_qkv(i64 tensor, const Row& row, std::string_view front);
  const TowerConfig& tower(i64 tensor) const;
  void check_rows(i64 tensor, i64 heads) const;
  void check_experts(i64 tensor, const Row& row) const;

  const Store& store_;
  std::span<const NamedTensor> names_;
  const HfConfig* config_;
  const Model& model_;
  i64 layers_ = 0;
  TitanTensors out_;
  std::vector<std::string> unknown_;
};

bool Translation::add_named(const NamedTensor& n) {
  std::optional<InLayer> layer = in_layer(n.name, kLayers), mtp;
  if (!layer && model_.mtp) mtp = in_layer(n.name, kMtpLayers);
  if (!layer && !mtp) {
    const Row* row = find(kOnce, n.name);
    if (row) add(n.tensor, *row, "");
    return row != nullptr;
  }
  const InLayer& in = layer ? *layer : *mtp;
  const Row* row = mtp ? find(kMtp, in.behind) : nullptr;
  for (std::span<const Row> rows : model_.layer)
    if (!row) row = find(rows, in.behind);
  if (row) add(n.tensor, *row, cat("model.layers.", mtp ? layers_ + in.number : in.number, "."));
  return row != nullptr;
}

void Translation::add(i64 t, const Row& row, std::string_view front) {
  std::span<const i64> dims = store_.dims(t);
  std::string name = cat(front, row.disk);
  switch (row.move) {
    case Move::kQuery:
    case Move::kKey:
      if (model_.pairs) {
        i64 heads = row.move == Move::kQuery ? tower(t).heads : tower(t).kv_groups;
        check_rows(t, heads);
        return add_heads(t, std::move(name), heads, 0, 1, heads, true);
      }
      [[fallthrough]];
    case Move::kCopy:
      return out_.tensors.push_back({std::move(name), {dims.begin(), dims.end()}, {{t}}});
    case Move::kQkv:
      return add_qkv(t, row, front);
    case Move::kExperts:
      check_experts(t, row);
      return add_experts(out_.tensors, store_, {t, 0, dims[1]},
                         [&](i64 e) { return filled(name, "{E}", cat(e)); });
    case Move::kNone:
      out_.beside.push_back(t);
  }
}

// Experts were once [experts, in, out], under names that do not say so: the columns of the embedding show it,
// unless experts are as wide as the model.
void Translation::check_experts(i64 t, const Row& row) const {
  const MoeConfig moe = config_ ? config_->model.moe : MoeConfig{};
  auto embedding = std::ranges::find(names_, "tok_embeddings.weight", &NamedTensor::name);
  std::span<const i64> of_embedding = store_.dims(embedding->tensor);
  i64 hidden = of_embedding.size() == 2 ? of_embedding[1] : 0;
  bool down = row.disk.ends_with("down_proj.weight");
  check_stack(store_, t, moe.experts, down ? hidden : moe.ffn, down ? moe.ffn : hidden);
  std::span<const i64> dims = store_.dims(t);
  if (row.titan.find('_', row.titan.rfind('.')) != row.titan.npos || dims[1] != dims[2]) return;
  throw Error(Code::kAmbiguousLayout, "torchtitan changed the order of these dimensions, and they are equal")
      .file(store_.root())
      .tensor(store_.name(t))
      .expected("a name that says it, such as moe.experts.w1_EFD")
      .found(to_string(store_.shape(t)));
}

// The numbers of heads, which no shape shows.
const TowerConfig& Translation::tower(i64 t) const {
  if (config_) return config_->model.text;
  throw Error(Code::kUnknownAssets,
              "the number of heads is needed to put the rows of queries and keys in order")
      .file(store_.root())
      .tensor(store_.name(t))
      .help("`assets` names a folder with the model's config.json");
}

void Translation::check_rows(i64 t, i64 heads) const {
  const TowerConfig& text = tower(t);
  std::span<const i64> dims = store_.dims(t);
  if (dims.size() == 2 && heads > 0 && text.head_dim % 2 == 0 &&
      dims[0] == checked_mul(heads, text.head_dim, "rows"))
    return;
  throw Error(Code::kSourceShape, "the rows are not those of the heads in config.json")
      .file(store_.root())
      .tensor(store_.name(t))
      .expected(cat("[", heads, " heads of ", text.head_dim, ", columns]"))
      .found(to_string(store_.shape(t)));
}

// Head h of the new tensor is head (h / each) * stride + h % each + first_head of the old one: of queries in
// the picture above 4 of every 6 heads, of keys the fifth. With `pairs` even rows of a head come before odd
// ones.
void Translation::add_heads(i64 t, std::string name, i64 heads, i64 first_head, i64 stride, i64 each,
                            bool pairs) {
  const i64 d = tower(t).head_dim;
  std::vector<StorePiece> pieces;
  for (i64 h = 0; h < heads; h++) {
    i64 from = (h / each * stride + h % each + first_head) * d, to = h * d;
    if (pairs)
      for (i64 j = 0; j < 2; j++) pieces.push_back({t, {}, from + j, d / 2, to + j * (d / 2), 2});
    else
      pieces.push_back({t, {}, from, d, to});
  }
  out_.tensors.push_back({std::move(name), {heads * d, store_.dims(t)[1]}, std::move(pieces)});
}

// Every group has its heads of queries, then its key, then its value: q q q q k v | q q q q k v.
void Translation::add_qkv(i64 t, const Row& row, std::string_view front) {
  const TowerConfig& text = tower(t);
  const i64 groups = text.kv_groups, each = groups == 0 ? 0 : text.heads / groups;
  if (groups == 0 || text.heads % groups != 0)
    throw Error(Code::kModelNumbers, "the heads of queries do not divide over those of keys")
        .expected(cat(text.heads, " heads a multiple of the groups"))
        .found(counted(groups, "group"));
  check_rows(t, text.heads + 2 * groups);
  auto name = [&](std::string_view part) { return cat(front, filled(row.disk, "{P}", part)); };
  add_heads(t, name("q"), text.heads, 0, each + 2, each, model_.pairs);
  add_heads(t, name("k"), groups, each, each + 2, 1, model_.pairs);
  add_heads(t, name("v"), groups, each + 1, each + 2, 1, false);
}

}  // namespace

bool is_of_titan(std::span<const NamedTensor> model) {
  return std::ranges::any_of(model, [](const NamedTensor& n) { return n.name == "tok_embeddings.weight"; });
}

TitanTensors titan_tensors(const Store& store, std::span<const NamedTensor> model, const HfConfig* config) {
  return Translation(store, model, config).run();
}

}  // namespace mckpt::impl
