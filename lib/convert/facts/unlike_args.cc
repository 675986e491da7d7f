// All values become texts as Python writes them, in which 10000 and 10000.0 are equal.
#include "convert/facts/unlike_args.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "convert/facts/megatron_args.h"
#include "convert/facts/rope_args.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "hf/model.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/run_config.h"
#include "io/dcp/run/sizes.h"
#include "io/dcp/run/transformer_config.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kNoValue = "None", kSaysTrue = "True", kSaysFalse = "False";

std::string real_text(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::trunc(value);
  return whole ? cat(static_cast<i64>(value)) : cat(value);
}

// Nothing for values of other kinds, such as enums and tuples.
std::optional<std::string> text_of(const PickleValue& v) {
  using Kind = PickleValue::Kind;
  if (v.is(Kind::kNone)) return std::string(kNoValue);
  if (v.is(Kind::kBool)) return std::string(v.as_bool() ? kSaysTrue : kSaysFalse);
  if (v.is_int()) return cat(v.as_int());
  if (v.is(Kind::kFloat)) return real_text(v.as_float());
  if (v.is(Kind::kText)) return std::string(v.text());
  return std::nullopt;
}

std::string text_of(const ArgField::Value& v) {
  if (const bool* flag = std::get_if<bool>(&v)) return std::string(*flag ? kSaysTrue : kSaysFalse);
  if (const i64* number = std::get_if<i64>(&v)) return cat(*number);
  if (const double* real = std::get_if<double>(&v)) return real_text(*real);
  if (const auto* text = std::get_if<std::string>(&v)) return *text;
  return "";
}

std::optional<std::string> text_of_yaml(std::string_view v) {
  if (v == "true") return std::string(kSaysTrue);
  if (v == "false") return std::string(kSaysFalse);
  if (v == "null") return std::string(kNoValue);
  double number = 0;
  auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), number);
  if (error == std::errc() && end == v.data() + v.size()) return real_text(number);
  const bool name = std::ranges::all_of(v, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return name && !v.empty() ? std::optional(std::string(v)) : std::nullopt;
}

// As Python writes them; nothing for lists and objects.
std::optional<std::string> text_of(const JsonValue& v) {
  if (v.is(JsonType::kNull)) return std::string(kNoValue);
  if (v.is(JsonType::kBool)) return std::string(v.boolean("") ? kSaysTrue : kSaysFalse);
  if (v.is(JsonType::kNumber)) return text_of_yaml(v.number(""));
  if (v.is(JsonType::kString)) return v.string("");
  return std::nullopt;
}

// The values that a run states of its model.
class RunStatement {
 public:
  explicit RunStatement(const Store& store) {
    try {
      args_ = args_of(store);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
      return;
    }
    if (args_) return;
    yaml_ = run_config_text(store);
    if (yaml_.empty()) config_ = transformer_config_of(store);
  }

  bool said() const { return args_ || !yaml_.empty() || config_; }
  std::string_view where() const {
    return args_ ? "the args" : yaml_.empty() ? kTransformerConfigName : kRunConfigName;
  }
  bool is_args() const { return args_ != nullptr; }
  const PickleValue* args() const { return args_.get(); }

  std::optional<std::string> find(std::string_view name) const {
    if (config_) {
      const JsonValue* value = config_->find(name);
      return value ? text_of(*value) : std::nullopt;
    }
    if (!args_) {
      std::optional<std::string_view> entry = model_entry(yaml_, name);
      return entry ? text_of_yaml(*entry) : std::nullopt;
    }
    const PickleValue* value = arg_of(*args_, name);
    return value ? text_of(*value) : std::nullopt;
  }
  bool has(std::string_view name, std::string_view value) const {
    const std::optional<std::string> found = find(name);
    return found && *found == value;
  }

 private:
  std::shared_ptr<const PickleValue> args_;
  std::string yaml_;
  std::optional<JsonValue> config_;
};

// One fact. `newer`: its name in newer args and in Bridge's configuration, "" if that is the same. `usual`:
// the value of every run that does not choose one, "" if there is none. `without`: the value of a config for
// which no conversion writes the field; "": the two are not compared.
struct FactRow {
  std::string_view name, newer;
  Unlike unlike;
  std::string_view usual, without, key, means;
};

constexpr FactRow kFacts[] = {
    // Sizes.
    {"num_attention_heads", "", Unlike::kSizes, "", "", "num_attention_heads", ""},
    {"num_query_groups", "", Unlike::kSizes, "", "", "num_key_value_heads", ""},
    {"hidden_size", "", Unlike::kSizes, "", "", "hidden_size", ""},
    {"num_experts", "num_moe_experts", Unlike::kSizes, "", "", "num_experts", ""},
    {"num_layers", "", Unlike::kShown, "", "", "num_hidden_layers", ""},
    {"ffn_hidden_size", "", Unlike::kShown, "", "", "intermediate_size", ""},
    {"moe_ffn_hidden_size", "", Unlike::kShown, "", "", "moe_intermediate_size", ""},
    // Sizes whose products alone are seen in shapes.
    {"linear_num_key_heads", "", Unlike::kSizes, "16", "", "linear_num_key_heads", ""},
    {"linear_num_value_heads", "", Unlike::kSizes, "32", "", "linear_num_value_heads", ""},
    {"linear_key_head_dim", "", Unlike::kSizes, "128", "", "linear_key_head_dim", ""},
    {"linear_value_head_dim", "", Unlike::kSizes, "128", "", "linear_value_head_dim", ""},
    {"mamba_num_heads", "", Unlike::kSizes, "", "", "mamba_num_heads", ""},
    {"mamba_head_dim", "", Unlike::kSizes, "64", "", "mamba_head_dim", ""},
    {"mamba_state_dim", "", Unlike::kSizes, "128", "", "ssm_state_size", ""},
    {"mamba_num_groups", "", Unlike::kSizes, "8", "", "n_groups", ""},
    {"qk_head_dim", "", Unlike::kSizes, "128", "", "qk_nope_head_dim", ""},
    {"qk_pos_emb_head_dim", "", Unlike::kSizes, "64", "", "qk_rope_head_dim", ""},
    {"v_head_dim", "", Unlike::kSizes, "128", "", "v_head_dim", ""},
    // Facts that decide which weights the bytes are.
    {"apply_layernorm_1p", "layernorm_zero_centered_gamma", Unlike::kBytes, "False", "False", "",
     "whether the weights of norms are stored less one"},
    {"normalization", "", Unlike::kBytes, "LayerNorm", "", "",
     "whether norms take the mean off, and have biases"},
    {"rotary_interleaved", "", Unlike::kBytes, "False", "False", "",
     "whether neighbours in a head are rotated together, or its two halves"},
    {"swiglu", "", Unlike::kBytes, "False", "", "hidden_act", "whether MLPs are gated with SiLU"},
    {"squared_relu", "", Unlike::kBytes, "False", "", "hidden_act",
     "whether MLPs have squared ReLU and no gate"},
    {"quick_geglu", "", Unlike::kBytes, "False", "False", "hidden_act",
     "whether MLPs are gated with a quick GELU"},
    {"moe_mlp_glu_interleave_size", "", Unlike::kBytes, "None", "None", "",
     "whether rows of gate and up alternate in blocks"},
    {"moe_shared_expert_glu_interleave_size", "", Unlike::kBytes, "None", "None", "",
     "whether rows of gate and up of shared experts alternate in blocks"},
    // Names and shapes show these: a config that says something else does not fit them.
    {"qk_layernorm", "", Unlike::kShown, "False", "", "", ""},
    {"add_bias_linear", "", Unlike::kShown, "True", "", "", ""},
    {"add_qkv_bias", "", Unlike::kShown, "False", "", "attention_bias", ""},
    {"attention_output_gate", "", Unlike::kShown, "False", "", "", ""},
    {"multi_latent_attention", "", Unlike::kShown, "False", "False", "", ""},
    {"untie_embeddings_and_output_weights", "", Unlike::kShown, "False", "", "tie_word_embeddings", ""},
    {"kv_channels", "", Unlike::kShown, "None", "", "head_dim", ""},
    {"moe_shared_expert_intermediate_size", "", Unlike::kShown, "None", "None",
     "shared_expert_intermediate_size", ""},
    // Numbers and ways that a model computes with.
    {"norm_epsilon", "layernorm_epsilon", Unlike::kValues, "1e-05", "", "rms_norm_eps", ""},
    {"apply_residual_connection_post_layernorm", "", Unlike::kValues, "False", "False", "", ""},
    {"position_embedding_type", "", Unlike::kValues, "learned_absolute", "", "", ""},
    {"rotary_base", "", Unlike::kValues, "10000", "", "rope_theta", ""},
    {"rotary_percent", "", Unlike::kValues, "1", "", "partial_rotary_factor", ""},
    {"rotary_seq_len_interpolation_factor", "", Unlike::kValues, "None", "None", "rope_scaling.factor", ""},
    {"use_rope_scaling", "", Unlike::kValues, "False", "False", "rope_scaling.rope_type", ""},
    {"rope_scaling_factor", "", Unlike::kValues, "8", "", "rope_scaling.factor", ""},
    {"yarn_rotary_scaling_factor", "", Unlike::kValues, "None", "", "rope_scaling.factor", ""},
    {"yarn_original_max_position_embeddings", "", Unlike::kValues, "None", "",
     "rope_scaling.original_max_position_embeddings", ""},
    {"yarn_beta_fast", "", Unlike::kValues, "None", "", "rope_scaling.beta_fast", ""},
    {"yarn_beta_slow", "", Unlike::kValues, "None", "", "rope_scaling.beta_slow", ""},
    {"rope_type", "", Unlike::kValues, "None", "", "rope_scaling.rope_type", ""},
    {"rotary_scaling_factor", "", Unlike::kValues, "1", "", "rope_scaling.factor", ""},
    {"original_max_position_embeddings", "", Unlike::kValues, "4096", "",
     "rope_scaling.original_max_position_embeddings", ""},
    {"beta_fast", "", Unlike::kValues, "32", "", "rope_scaling.beta_fast", ""},
    {"beta_slow", "", Unlike::kValues, "1", "", "rope_scaling.beta_slow", ""},
    {"mscale", "", Unlike::kValues, "1", "", "rope_scaling.mscale", ""},
    {"mscale_all_dim", "", Unlike::kValues, "0", "", "rope_scaling.mscale_all_dim", ""},
    {"no_rope_freq", "", Unlike::kValues, "None", "None", "no_rope_layers", ""},
    {"softmax_type", "", Unlike::kValues, "vanilla", "vanilla", "", ""},
    {"moe_router_topk", "", Unlike::kValues, "2", "", "num_experts_per_tok", ""},
    {"moe_router_score_function", "", Unlike::kValues, "softmax", "", "", ""},
    {"moe_router_enable_expert_bias", "", Unlike::kShown, "False", "", "", ""},
    {"moe_router_pre_softmax", "", Unlike::kValues, "False", "", "norm_topk_prob", ""},
    {"moe_router_topk_scaling_factor", "", Unlike::kValues, "1", "", "routed_scaling_factor", ""},
    {"moe_router_num_groups", "", Unlike::kValues, "None", "", "n_group", ""},
    {"moe_router_group_topk", "", Unlike::kValues, "None", "", "topk_group", ""},
    {"moe_apply_probs_on_input", "", Unlike::kValues, "False", "False", "", ""},
    {"glu_linear_offset", "", Unlike::kValues, "0", "0", "", ""},
    {"activation_func_clamp_value", "", Unlike::kValues, "None", "", "swiglu_limit", ""},
    {"use_mup", "", Unlike::kValues, "False", "False", "", ""},
};

// Whether the tensors have as many experts as the config: then the args are wrong, which is another fault
// (MC1312). A router has a row for each.
bool stores_experts(const Store& store, i64 experts) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (store.name(t).ends_with(".mlp.router.weight"))
      if (std::span<const i64> dims = store.dims(t); dims.size() >= 2)
        return dims[dims.size() - 2] == experts;
  return false;
}

class ArgsComparison {
 public:
  ArgsComparison(const Store& store, const HfModel& model, const RunStatement& run)
      : store_(store), model_(model.map->model()), entries_(model.config.run), run_(run) {
    const Grid grid;
    const RunSetup setup;
    for (ArgField& f : model_fields({.map = *model.map, .entries = entries_, .grid = grid, .run = setup}))
      config_.emplace(f.name, text_of(f.value));
    fill_in();
  }

  std::vector<UnlikeArg> differences() {
    std::vector<UnlikeArg> out;
    for (const FactRow& row : kFacts) {
      const std::optional<std::string> found = stated(row);
      const std::string expected = expected_of(row);
      if (!found || expected.empty() || *found == expected || means_same(row, *found, expected)) continue;
      if (*found == row.usual && !describes_model()) continue;
      out.push_back({name_of(row), *found, expected, row.unlike, row.key, row.means, why(row)});
    }
    return out;
  }

 private:
  bool latent() const { return model_.mla.kv_lora > 0; }

  // Facts that follow from the model and are in no args that a conversion writes.
  void fill_in() {
    const RouterEntries& router = entries_.router;
    if (entries_.rope.type == "linear")
      config_["rotary_seq_len_interpolation_factor"] = real_text(entries_.rope.factor);
    if (model_.moe.experts == 0) return;
    config_.emplace("moe_router_topk_scaling_factor", router.scale > 0 ? real_text(router.scale) : "1");
    if (model_.moe.expert_bias || router.groups == 0) config_.emplace("moe_router_num_groups", kNoValue);
  }

  // The run's value, under either name.
  std::optional<std::string> stated(const FactRow& row) const {
    if (is_moot(row)) return std::nullopt;
    std::optional<std::string> found = run_.find(row.name);
    if (!found && !row.newer.empty()) found = run_.find(row.newer);
    if (!found) return std::nullopt;
    if (row.name == "moe_router_topk_scaling_factor" && *found == kNoValue) return "1";
    if (row.name == "moe_router_num_groups" && *found == "1") return std::string(kNoValue);
    const bool says_none = row.without == kNoValue || row.name == "moe_router_num_groups";
    return *found == kNoValue && !says_none ? std::nullopt : found;
  }

  // The name under which the run states it.
  std::string_view name_of(const FactRow& row) const { return run_.find(row.name) ? row.name : row.newer; }

  // "" for a fact of which the config says nothing.
  std::string expected_of(const FactRow& row) const {
    auto at = config_.find(row.name);
    return at == config_.end() ? std::string(row.without) : at->second;
  }

  std::string why(const FactRow& row) const {
    return row.name == "rotary_percent" ? unread_share(model_, entries_.rope) : std::string();
  }

  bool is_of_type(std::string_view front) const { return model_.model_type.starts_with(front); }

  // Whether a fact has no meaning for the model or for the run, or the config does not decide it.
  bool is_moot(const FactRow& row) const {
    const std::string_view n = row.name;
    // The projections of latent attention are not fused, and their shapes say the heads.
    if (n == "num_attention_heads") return latent();
    // Without grouped queries the number of groups means nothing.
    if (n == "num_query_groups")
      return latent() || (run_.is_args() && !run_.has("group_query_attention", kSaysTrue));
    if (n == "num_experts") return model_.moe.experts == 0 || stores_experts(store_, model_.moe.experts);
    // The args of a run whose layers follow a pattern count other layers than the config.
    if (n == "num_layers") return run_.is_args() ? has_pattern(*run_.args()) : true;
    if (n == "kv_channels") return latent() || !model_.layer_sizes.empty();
    if (n.starts_with("moe_")) return model_.moe.experts == 0;
    if (n == "rope_scaling_factor") return !run_.has("use_rope_scaling", kSaysTrue);
    // Attention beside a Mamba mixer has rotary embeddings.
    if (n == "position_embedding_type")
      return std::ranges::any_of(model_.text.layers,
                                 [](const LayerSpec& l) { return l.mixer == Mixer::kAttentionAndMamba; });
    // DeepSeek-V4 rotates in a way of its own.
    if (n == "rotary_interleaved") return is_of_type("deepseek_v4");
    // The rotated part of a latent head has a size of its own; MiniMax's configs say the part in another way.
    if (n == "rotary_percent") return latent() || (entries_.rope.percent == 0 && is_of_type("minimax"));
    return false;
  }

  // Whether the two values are two words for one thing.
  bool means_same(const FactRow& row, std::string_view found, std::string_view expected) const {
    const std::string_view n = row.name;
    // Text alone has equal positions in all sections. An older flag chose rotary embeddings as well.
    if (n == "position_embedding_type")
      return expected == "mrope"
                 ? found == "rope"
                 : expected == "rope" &&
                       (found == "mrope" || run_.has("use_rotary_position_embeddings", kSaysTrue));
    // Tensors show it.
    if (n == "softmax_type") return found == "learnable" || expected == "learnable";
    // A factor of the windows' layers or of the others alone is not in the args.
    if (n == "rotary_seq_len_interpolation_factor")
      return found == kNoValue && !states_interpolation(model_, entries_);
    if (n == "no_rope_freq") return is_of_type("llama4") || is_of_type("exaone");
    if (n == "moe_apply_probs_on_input" || n == "moe_router_score_function") return is_of_type("llama4");
    return false;
  }

  // Whether a tensor of the language model has such a part in its name.
  bool has_name(std::initializer_list<std::string_view> parts) const {
    for (i64 t = 0; t < store_.tensor_count(); t++) {
      const std::string_view name = store_.name(t);
      auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
      if (!has("vision") && !has("audio") && std::ranges::any_of(parts, has)) return true;
    }
    return false;
  }

  // Whether the args describe the model. A program that builds its model in another way leaves Megatron's
  // defaults in them, which the tensors contradict; one of three may be wrong in args that do.
  bool describes_model() {
    if (!run_.is_args()) return true;
    if (describes_) return *describes_;
    for (const char* size : {"num_layers", "hidden_size", "num_attention_heads"})
      if (std::optional<std::string> found = run_.find(size); !found || *found == kNoValue)
        return *(describes_ = false);
    int wrong = 0;
    wrong += run_.has("normalization", "LayerNorm") && !has_name({"norm.bias", "norm_bias"});
    wrong += run_.has("position_embedding_type", "learned_absolute") && !has_name({"position_embeddings."});
    wrong += run_.has("add_bias_linear", kSaysTrue) && !has_name({"linear_proj.bias", "linear_fc2.bias"});
    return *(describes_ = wrong < 2);
  }

  const Store& store_;
  const ModelConfig& model_;
  const RunEntries& entries_;
  const RunStatement& run_;
  std::map<std::string_view, std::string> config_;
  std::optional<bool> describes_;
};

}  // namespace

UnlikeArgs unlike_args(const Store& store, const HfModel& model) {
  const RunStatement run(store);
  if (!run.said()) return {};
  return {run.where(), ArgsComparison(store, model, run).differences()};
}

}  // namespace mckpt::impl
