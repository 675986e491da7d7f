// Reads the entries that only the args of a run state. The configs of models with towers have them in
// "text_config" or "llm_config", some of them at the top. transformers 5 puts everything about rotary
// embeddings in "rope_parameters"; older versions have "rope_theta" at the top and the stretching in
// "rope_scaling".
#include "hf/config/run_entries.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "hf/config/fields.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kShare = "partial_rotary_factor", kNoWindows = "layers without windows";

// How the class of a model reads entries of rotary embeddings. `percent` and `rotated` are its defaults, and
// count wherever nothing else says them; a class without either that reads a share has `share`. The others
// are of an object, which counts where the config has none, with its own base.
struct ClassRope {
  std::string_view model_type;  // without "_text" behind it
  double percent = 0;
  i64 rotated = 0;  // rotary_dim
  bool share = false;
  std::string_view some_layers{};  // the only layers that are ever stretched
  std::string_view type{};         // "": no object
  double base = 0, factor = 0, beta_fast = 0, beta_slow = 0, mscale = 0, mscale_all_dim = 0;
  i64 original_positions = 0;

  bool reads_share() const { return share || percent > 0 || rotated > 0; }
};
constexpr ClassRope kClassRopes[] = {
    {.model_type = "bailing_moe_v2", .share = true},
    {.model_type = "deepseek_v4", .share = true, .some_layers = "layers with compressed attention"},
    {.model_type = "gemma3", .some_layers = kNoWindows},
    {.model_type = "gemma3n", .some_layers = kNoWindows},
    {.model_type = "glm4", .percent = 0.5},
    {.model_type = "glm4_moe", .percent = 0.5},
    {.model_type = "glm4_moe_lite", .share = true},
    {.model_type = "glm4v_moe", .percent = 0.5},
    {.model_type = "mimo_v2_flash", .share = true},
    {.model_type = "minimax_m2", .share = true},
    {.model_type = "minimax_m3_vl", .rotated = 64},
    {.model_type = "nemotron", .percent = 0.5},
    {.model_type = "olmo3", .some_layers = kNoWindows},
    {.model_type = "qwen3_next", .percent = 0.25},
    {.model_type = "qwen3_5", .percent = 0.25},
    {.model_type = "qwen3_5_moe", .percent = 0.25},
    {.model_type = "qwen4_exp", .share = true},
    {.model_type = "sarvam_moe", .share = true},
    {.model_type = "step3p5", .some_layers = kNoWindows},
    {.model_type = "gpt_oss",
     .type = "yarn",
     .factor = 32,
     .beta_fast = 32,
     .beta_slow = 1,
     .original_positions = 4096},
    {.model_type = "ministral3",
     .type = "yarn",
     .base = 1000000,
     .factor = 16,
     .beta_fast = 32,
     .beta_slow = 1,
     .mscale = 1,
     .mscale_all_dim = 1,
     .original_positions = 16384},
};

ClassRope rope_of_class(std::string_view model_type) {
  constexpr std::string_view kText = "_text";
  if (model_type.ends_with(kText)) model_type.remove_suffix(kText.size());
  const auto* at = std::ranges::find(kClassRopes, model_type, &ClassRope::model_type);
  return at == std::end(kClassRopes) ? ClassRope{} : *at;
}

void take_default(const ClassRope& usual, RopeEntries& rope) {
  rope.type = usual.type;
  if (usual.base > 0) rope.base = usual.base;
  rope.factor = usual.factor, rope.original_positions = usual.original_positions;
  rope.beta_fast = usual.beta_fast, rope.beta_slow = usual.beta_slow;
  rope.mscale = usual.mscale, rope.mscale_all_dim = usual.mscale_all_dim;
}

// The first of the keys that the object has.
std::optional<double> real_of(const ConfigFields& c, std::span<const std::string_view> keys) {
  for (std::string_view key : keys)
    if (c.has(key)) return c.real_or(key, 0);
  return std::nullopt;
}

// Notes the types of objects for kinds of layers, of which nothing else is read.
void note_kinds(const JsonValue& object, RopeEntries& rope) {
  for (const JsonMember& m : object.object("")) {
    const JsonValue* type = m.value.find("rope_type");
    if (type == nullptr) type = m.value.find("type");
    if (type == nullptr || !type->is(JsonType::kString) || type->string("") == "default") continue;
    rope.of_kinds.push_back(cat(escaped(m.name), ": ", escaped(type->string(""))));
  }
}

// The entries of "rope_parameters" or "rope_scaling"; entries that the object lacks stay.
void read_rope_object(const ConfigFields& c, RopeEntries& rope) {
  rope.base = c.real_or("rope_theta", rope.base);
  rope.percent = c.real_or(kShare, rope.percent);
  rope.type = c.text_or(c.has("rope_type") ? "rope_type" : "type", rope.type);
  if (rope.type == kSarvamYarn) rope.type = "yarn";
  rope.factor = c.real_or("factor", rope.factor);
  rope.beta_fast = c.real_or("beta_fast", rope.beta_fast);
  rope.beta_slow = c.real_or("beta_slow", rope.beta_slow);
  rope.mscale = c.real_or("mscale", rope.mscale);
  rope.mscale_all_dim = c.real_or("mscale_all_dim", rope.mscale_all_dim);
  rope.low_freq_factor = c.real_or("low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = c.real_or("high_freq_factor", rope.high_freq_factor);
  rope.original_positions = c.count_or("original_max_position_embeddings", rope.original_positions);
  if (std::vector<i64> s = c.numbers_or_none("mrope_section"); !s.empty()) rope.sections = std::move(s);
}

// A number, or one for each layer: Megatron-Bridge takes the first layer's for the model's.
double read_base(const ConfigFields& c) {
  constexpr std::string_view kKey = "rope_theta";
  const JsonValue* bases = c.find(kKey);
  if (!bases || !bases->is(JsonType::kArray)) return c.real_or(kKey, 0);
  const JsonValue::Array& list = bases->array(kKey);
  return list.empty() || !list[0].is(JsonType::kNumber) ? 0 : list[0].real(kKey);
}

// `model_type`: of the language model.
RopeEntries read_rope(const ConfigFields& c, std::string_view model_type, bool own_code) {
  const ClassRope usual = rope_of_class(model_type);
  RopeEntries rope;
  rope.base = read_base(c);
  // MiniMax has the number of items of a head.
  const i64 rotated = c.count_or("rotary_dim", usual.rotated), head = c.count_or("head_dim", 0);
  const double share = head > 0 ? static_cast<double>(rotated) / static_cast<double>(head) : 0;
  rope.percent = c.real_or(kShare, share);
  bool said = false;
  for (std::string_view key : kRopeObjects)
    if (const JsonValue* how = c.find(key); how && how->is(JsonType::kObject)) {
      read_rope_object(c.object(key), rope);
      note_kinds(*how, rope);
      said = true;
    }
  if (!said && !usual.type.empty()) take_default(usual, rope);
  if (!own_code && !usual.reads_share()) rope.unread_percent = std::exchange(rope.percent, 0);
  if (rope.percent == 0) rope.percent = usual.percent;
  rope.some_layers = c.has("rope_local_base_freq") ? kNoWindows : usual.some_layers;
  return rope;
}

RouterEntries read_router(const ConfigFields& c) {
  RouterEntries router;
  for (auto key = std::rbegin(kTopExperts); key != std::rend(kTopExperts); ++key)
    router.top_experts = c.count_or(*key, router.top_experts);
  router.groups = c.count_or("n_group", 0);
  router.top_groups = c.count_or("topk_group", 0);
  router.scale = c.real_or("routed_scaling_factor", c.real_or("moe_router_scaling_factor", 0));
  if (c.has("norm_topk_prob")) router.renormalised = c.flag_or("norm_topk_prob", false);
  return router;
}

}  // namespace

ConfigFields language_of(const ConfigFields& top) {
  for (std::string_view key : {"text_config", "llm_config"})
    if (top.has(key)) return top.object(key);
  return top.has("thinker_config") ? language_of(top.object("thinker_config")) : top;
}

RunEntries read_run_entries(const ConfigFields& top, bool own_code) {
  const ConfigFields c = language_of(top);
  RunEntries run;
  run.positions = top.count_or("max_position_embeddings", 0);
  if (run.positions == 0) run.positions = c.count_or("max_position_embeddings", 0);
  run.ffn = c.count_or("intermediate_size", 0);
  run.head_dim = c.count_or("head_dim", 0);
  run.norm_epsilon = real_of(c, kEpsilons);
  run.attention_dropout = c.real_or("attention_dropout", 0);
  run.hidden_dropout = c.real_or("hidden_dropout", 0);
  run.glu_limit = c.real_or("swiglu_limit", 0);
  for (std::string_view key : {"mlp_hidden_act", "hidden_act", "activation_function"})
    if (run.activation.empty()) run.activation = c.text_or(key, "");
  run.rope = read_rope(c, c.text_or("model_type", top.text_or("model_type", "")), own_code);
  run.router = read_router(c);
  return run;
}

}  // namespace mckpt::impl
