// A table for each kind of limit: numbers, words, and entries that are null. Activations are looked for in
// all configs of parts (text_config, vision_config, ...), because transformers makes all parts; numbers in
// the part of the language model and in its objects of rotary embeddings.
#include "hf/config/entry_limits.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "hf/config/fields.h"
#include "hf/config/run_entries.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// `expected`: the limits, as messages say them.
struct NumberLimit {
  std::string_view key;
  double least;
  bool above_least;  // the least itself is out of the limits
  double most;
  std::string_view expected;
};
constexpr NumberLimit kBaseLimit = {"rope_theta", 0, true, kNoLimit, "a positive number"},
                      kShareLimit = {"partial_rotary_factor", 0, true, 1, "more than 0, at most 1"};
constexpr NumberLimit kNumberLimits[] = {{"attention_dropout", 0, false, 1, "0 to 1"},
                                         {"hidden_dropout", 0, false, 1, "0 to 1"},
                                         kBaseLimit,
                                         kShareLimit};
// The entries of objects of rotary embeddings.
constexpr NumberLimit kRopeLimits[] = {
    kBaseLimit, kShareLimit, {"factor", 0, true, kNoLimit, "a positive number"}};

// The names of activations in any release of transformers.
constexpr std::string_view kActivations[] = {
    "gelu",       "gelu_10", "gelu_accurate", "gelu_fast", "gelu_new", "gelu_python", "gelu_python_tanh",
    "hardswish",  "laplace", "leaky_relu",    "linear",    "mish",     "prelu",       "gelu_pytorch_tanh",
    "quick_gelu", "relu",    "relu2",         "relu6",     "sigmoid",  "silu",        "sqrtsoftplus",
    "swish",      "tanh",    "xielu"};

struct WordLimit {
  std::span<const std::string_view> keys, words;
  std::string_view expected;
};
constexpr std::string_view kActivationKeys[] = {"hidden_act", "mlp_hidden_act", "hidden_activation",
                                                "activation_function"};
constexpr std::string_view kRopeTypeKeys[] = {"rope_type", "type"};
constexpr auto kRopeTypes = [] {
  std::array<std::string_view, std::size(kPlainRopes) + std::size(kStretchedRopes)> all;
  std::ranges::copy(kStretchedRopes, std::ranges::copy(kPlainRopes, all.begin()).out);
  return all;
}();
constexpr WordLimit kActivationWords = {kActivationKeys, kActivations,
                                        "an activation of transformers, such as silu or gelu_pytorch_tanh"},
                    kRopeWords = {kRopeTypeKeys, kRopeTypes,
                                  "a type of transformers, such as default, linear, yarn or llama3"};

// An entry that is null where none of the others is there. `key`: its spelling in most classes. `read_as`:
// what is made of null. `taken_by`: the model types whose class takes null, as an entry of its own or as one
// that it does not have. `refused_by`: the only ones whose class has the entry; empty: most have it.
// tests/judges/limits_of_entries.py asks the classes.
struct NullEntry {
  std::string_view key;
  std::span<const std::string_view> others;
  std::string_view read_as;
  std::initializer_list<std::string_view> taken_by = {}, refused_by = {};
  bool of_experts = false;  // says something only of models with experts
  bool at_top = false;      // read at the top, and not in the part of the language model
};
constexpr std::string_view kNoEpsilon = "not written into args, where Megatron has 1e-05",
                           kNoRopeBase = "not written into args, where Megatron has 10000",
                           kNoTop = "not written into args, where Megatron has 2";
const NullEntry kNullEntries[] = {
    {"rms_norm_eps", kEpsilons, kNoEpsilon},
    {"hidden_act", kActivationKeys, "read as not given"},
    {"rope_theta", kRopeObjects, kNoRopeBase, {"gemma4_text", "mimo_v2_flash", "ministral3", "nemotron_h"}},
    {.key = "tie_word_embeddings",
     .others = {},
     .read_as = "read as false",
     .taken_by = {"gemma3", "muse_glimmer", "qwen2_5_omni", "qwen2_audio", "qwen3_omni_moe", "step3p7"},
     .at_top = true},
    {"attention_bias",
     {},
     "read as false",
     {"ernie4_5_moe", "ernie4_5_vl_moe_text", "exaone4", "exaone_moe", "minimax_m2", "minimax_m3_vl_text",
      "ministral3", "mistral", "mixtral", "qwen2", "qwen2_5_omni_text", "qwen2_5_vl_text", "qwen2_moe"}},
    {"mlp_bias",
     {},
     "read as false",
     {},
     {"deepseek_v2", "deepseek_v32", "deepseek_v4", "falcon_h1", "glm_moe_dsa", "hy_v3", "llama", "nemotron",
      "nemotron_h", "seed_oss", "step3p5"}},
    {.key = "num_experts_per_tok",
     .others = kTopExperts,
     .read_as = kNoTop,
     .taken_by = {"deepseek_v2", "deepseek_v3", "ernie4_5_moe", "ernie4_5_vl_moe_text", "gemma4_text",
                  "kimi_k2", "kimi_k25", "hy_v3"},
     .of_experts = true},
};

// The classes that have another spelling of an entry. A class keeps every other one, whatever it is.
struct OwnSpelling {
  std::string_view model_type, key;
};
constexpr OwnSpelling kOwnSpellings[] = {{"gemma2", "hidden_activation"},
                                         {"gemma3_text", "hidden_activation"},
                                         {"gemma4_text", "hidden_activation"},
                                         {"muse_glimmer_text", "hidden_activation"},
                                         {"nemotron", "norm_eps"},
                                         {"nemotron_h", "layer_norm_epsilon"},
                                         {"nemotron_h", "mlp_hidden_act"}};

std::string_view spelling_of(const NullEntry& entry, std::string_view model_type) {
  for (const OwnSpelling& own : kOwnSpellings)
    if (own.model_type == model_type && std::ranges::find(entry.others, own.key) != entry.others.end())
      return own.key;
  return entry.key;
}

void check_number(const ConfigFields& c, const NumberLimit& limit, const JsonValue& value) {
  if (!value.is(JsonType::kNumber)) return;  // who reads the entry judges its type
  const double n = value.real(limit.key);
  const bool low = limit.above_least ? !(n > limit.least) : !(n >= limit.least);
  if (low || n > limit.most)
    throw c.error(limit.key, "is out of range").expected(limit.expected).found(value.summary());
}

// A number, or a list with one for each layer.
void check_entry(const ConfigFields& c, const NumberLimit& limit) {
  const JsonValue* value = c.find(limit.key);
  if (value == nullptr) return;
  check_number(c, limit, *value);
  if (!value->is(JsonType::kArray)) return;
  const JsonValue::Array& list = value->array(limit.key);
  if (list.empty()) throw c.error(limit.key, "is empty").expected(limit.expected).found("an empty list");
  for (const JsonValue& item : list) check_number(c, limit, item);
}

void check_words(const ConfigFields& c, const WordLimit& limit, bool own_code,
                 std::vector<std::string>& doubts) {
  for (std::string_view key : limit.keys) {
    const JsonValue* value = c.find(key);
    if (value == nullptr || !value->is(JsonType::kString)) continue;
    const std::string& word = value->string(key);
    if (std::ranges::find(limit.words, word) != limit.words.end()) continue;
    if (own_code) {
      doubts.push_back(cat("config.json has ", c.key(key), " ", escaped(word),
                           ", which transformers does not know: args cannot say it"));
      continue;
    }
    Error e = c.error(key, "is not known").expected(limit.expected).found(cat("\"", escaped(word), "\""));
    if (std::string_view near = nearest(word, limit.words); !near.empty())
      e.help(cat("did you mean '", near, "'?"));
    throw e;
  }
}

// The object of rotary embeddings, or the objects in it: one for each kind of layer.
void check_rope(const ConfigFields& c, const JsonValue& object, bool own_code,
                std::vector<std::string>& doubts) {
  for (const NumberLimit& limit : kRopeLimits) check_entry(c, limit);
  check_words(c, kRopeWords, own_code, doubts);
  for (const JsonMember& m : object.object(""))
    if (m.value.is(JsonType::kObject)) check_rope(c.object(m.name), m.value, own_code, doubts);
}

// Activations of this config and of the configs of its parts.
void check_activations(const ConfigFields& c, const JsonValue& object, bool own_code,
                       std::vector<std::string>& doubts) {
  check_words(c, kActivationWords, own_code, doubts);
  for (const JsonMember& m : object.object(""))
    if (m.value.is(JsonType::kObject) && m.name.ends_with("_config"))
      check_activations(c.object(m.name), m.value, own_code, doubts);
}

// The first of the keys is the one that is read.
void check_experts_of_token(const ConfigFields& c, i64 experts) {
  for (std::string_view key : kTopExperts) {
    const JsonValue* value = c.find(key);
    if (value == nullptr) continue;
    const std::string expected = cat("1 to ", experts, ", the number of experts");
    return check_number(c, {key, 1, false, static_cast<double>(experts), expected}, *value);
  }
}

void doubt_nulls(const ConfigFields& top, const ConfigFields& language, i64 experts,
                 std::vector<std::string>& doubts) {
  for (const NullEntry& entry : kNullEntries) {
    const ConfigFields& c = entry.at_top ? top : language;
    const std::string type = c.text_or("model_type", "");
    const std::string_view key = spelling_of(entry, type);
    if (!c.is_null(key) || c.has_any(entry.others) || (entry.of_experts && experts == 0)) continue;
    auto has_type = [&](auto& types) { return std::ranges::find(types, type) != types.end(); };
    if (has_type(entry.taken_by) || (entry.refused_by.size() > 0 && !has_type(entry.refused_by))) continue;
    doubts.push_back(
        cat("config.json has ", c.key(key), " null, which transformers 5 refuses: it is ", entry.read_as));
  }
}

}  // namespace

std::vector<std::string> check_entry_limits(const JsonValue& config, i64 experts, bool own_code) {
  const ConfigFields top(config, ""), c = language_of(top);
  std::vector<std::string> doubts;
  check_activations(top, config, own_code, doubts);
  for (std::string_view key : kEpsilons) check_entry(c, {key, 0, false, kNoLimit, "0 or more"});
  for (const NumberLimit& limit : kNumberLimits) check_entry(c, limit);
  for (std::string_view key : kRopeObjects)
    if (const JsonValue* rope = c.find(key); rope && rope->is(JsonType::kObject))
      check_rope(c.object(key), *rope, own_code, doubts);
  if (experts > 0) check_experts_of_token(c, experts);
  if (!own_code) doubt_nulls(top, c, experts, doubts);
  return doubts;
}

}  // namespace mckpt::impl
