// Entries are looked for at the top; the tie of the embedding also in `text_config`.
#include "hf/config/config_says.h"

#include "io/json/json.h"

namespace mckpt::impl {

ConfigSays config_says(const JsonValue& config) {
  ConfigSays out;
  if (const JsonValue* type = config.find("model_type"); type && type->is(JsonType::kString))
    out.model_type = type->string("model_type");
  if (const JsonValue* list = config.find("architectures"); list && list->is(JsonType::kArray))
    for (const JsonValue& name : list->array("architectures"))
      if (out.architecture.empty() && name.is(JsonType::kString))
        out.architecture = name.string("architectures");
  const JsonValue* text = config.find("text_config");
  for (const JsonValue* part : {&config, text}) {
    const JsonValue* tie = part ? part->find("tie_word_embeddings") : nullptr;
    if (!out.tied && tie && tie->is(JsonType::kBool)) out.tied = tie->boolean("tie_word_embeddings");
  }
  return out;
}

}  // namespace mckpt::impl
