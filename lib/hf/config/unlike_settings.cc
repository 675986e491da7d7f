// Both configs become flat lists of keys and values. Rotary embeddings have three spellings: transformers 5
// has all of "rope_parameters", older ones "rope_theta" beside a "rope_scaling" with "type" or "rope_type".
#include "hf/config/unlike_settings.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kOtherKeys[] = {"architectures", "auto_map",  "dtype",
                                           "id2label",      "label2id",  "initializer_range",
                                           "torch_dtype",   "use_cache", "quantization_config",
                                           "problem_type",  "model_name"};
constexpr std::string_view kSizes[] = {"model_type",          "hidden_size",       "num_hidden_layers",
                                       "vocab_size",          "intermediate_size", "moe_intermediate_size",
                                       "num_attention_heads", "head_dim",          "num_key_value_heads",
                                       "num_experts",         "num_local_experts", "n_routed_experts",
                                       "tie_word_embeddings"};
constexpr std::string_view kOtherEnds[] = {"_token_id", "_dropout", "_version", "dropout_prob"};
constexpr std::string_view kOtherBeginnings[] = {"_", "output_", "return_"};

bool is_of_the_model(std::string_view key) {
  return std::ranges::find(kOtherKeys, key) == std::end(kOtherKeys) &&
         std::ranges::none_of(kOtherEnds, [&](std::string_view end) { return key.ends_with(end); }) &&
         std::ranges::none_of(kOtherBeginnings,
                              [&](std::string_view begin) { return key.starts_with(begin); });
}

using Settings = std::map<std::string, const JsonValue*>;

void flatten(const JsonValue& object, const std::string& prefix, Settings& out) {
  const bool rope = prefix.ends_with("rope_");
  for (const JsonMember& m : object.object("config.json")) {
    const bool of_rope = m.name == "rope_parameters" || m.name == "rope_scaling";
    if (m.value.is(JsonType::kNull) || !is_of_the_model(m.name)) continue;
    if (m.value.is(JsonType::kObject)) {
      flatten(m.value, of_rope ? cat(prefix, "rope_") : cat(prefix, m.name, "."), out);
      continue;
    }
    const bool prefixed = rope && m.name.starts_with("rope_");
    out.emplace(prefixed ? cat(prefix, m.name.substr(5)) : cat(prefix, m.name), &m.value);
  }
}

bool are_equal(const JsonValue& a, const JsonValue& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case JsonType::kNull:
      return true;
    case JsonType::kBool:
      return a.boolean("") == b.boolean("");
    case JsonType::kNumber:
      return a.number("") == b.number("") || a.real("") == b.real("");
    case JsonType::kString:
      return a.string("") == b.string("");
    case JsonType::kArray:
      return std::ranges::equal(a.array(""), b.array(""), are_equal);
    case JsonType::kObject:
      return std::ranges::equal(a.object(""), b.object(""), [](const JsonMember& m, const JsonMember& n) {
        return m.name == n.name && are_equal(m.value, n.value);
      });
  }
  return false;
}

std::string text_of(const JsonValue& value) {
  return value.is(JsonType::kString) ? escaped(value.string("")) : value.summary();
}

}  // namespace

std::vector<UnlikeSetting> unlike_settings(std::string_view one, std::string_view other) {
  const JsonValue left = parse_config(one), right = parse_config(other);
  Settings a, b;
  flatten(left, "", a), flatten(right, "", b);
  std::vector<UnlikeSetting> out;
  for (const auto& [key, value] : a)
    if (auto at = b.find(key); at != b.end() && !are_equal(*value, *at->second))
      out.push_back({key, text_of(*value), text_of(*at->second)});
  return out;
}

std::vector<UnlikeSetting> unlike_sizes(std::string_view one, std::string_view other) {
  std::vector<UnlikeSetting> out = unlike_settings(one, other);
  std::erase_if(out, [](const UnlikeSetting& s) {
    return std::ranges::find(kSizes, s.key.substr(s.key.rfind('.') + 1)) == std::end(kSizes);
  });
  return out;
}

}  // namespace mckpt::impl
