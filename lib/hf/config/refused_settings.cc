// The config itself and its part for the language model are looked at, each by itself.
#include "hf/config/refused_settings.h"

#include <algorithm>
#include <optional>

#include "core/base/text.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

// Model types whose class in transformers cuts the list itself, or has another one.
constexpr std::string_view kOwnLists[] = {"deepseek_v4", "nemotron_h", "step3p5", "step3p7"};

std::optional<i64> number_in(const JsonValue& part, std::string_view key) {
  const JsonValue* value = part.find(key);
  if (!value || !value->is_integer() || value->number(key).size() > 18) return std::nullopt;
  return value->integer(key);
}

// Code beside the weights has rules of its own.
bool has_own_lists(const JsonValue& config, const JsonValue& part) {
  const JsonValue* type = part.find("model_type");
  return config.find("auto_map") || !type || !type->is(JsonType::kString) ||
         std::ranges::any_of(kOwnLists, [&](std::string_view own) {
           return type->string("model_type").starts_with(own);  // step3p7_text is of step3p7
         });
}

void add_of(const JsonValue& config, const JsonValue& part, const char* front,
            std::vector<std::string>& out) {
  const std::optional<i64> rows = number_in(part, "vocab_size"), pad = number_in(part, "pad_token_id");
  if (rows && pad && *rows > 0 && (*pad >= *rows || *pad < -*rows))
    out.push_back(cat("config.json has ", front, "pad_token_id ", *pad, ", and the vocabulary has ", *rows,
                      " rows: most classes of transformers do not make such an embedding"));
  const std::optional<i64> layers = number_in(part, "num_hidden_layers");
  const JsonValue* types = part.find("layer_types");
  if (!layers || !types || !types->is(JsonType::kArray) || has_own_lists(config, part)) return;
  if (const i64 listed = std::ssize(types->array("layer_types")); listed != *layers)
    out.push_back(cat("config.json has ", front, "layer_types of ", counted(listed, "layer"),
                      ", and num_hidden_layers is ", *layers, ": transformers refuses the config"));
}

}  // namespace

std::vector<std::string> refused_settings(std::string_view config_json) {
  const JsonValue config = parse_config(config_json);
  std::vector<std::string> out;
  add_of(config, config, "", out);
  if (const JsonValue* text = config.find("text_config")) add_of(config, *text, "text_config.", out);
  return out;
}

}  // namespace mckpt::impl
