// The few entries of a config.json that name the model, for who needs no numbers of it.
//
//   {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "text_config": {"tie_word_embeddings": true}}
#pragma once

#include <optional>
#include <string>

namespace mckpt::impl {

class JsonValue;

struct ConfigSays {
  std::string model_type{}, architecture{};  // the first class that has a name; "": none
  std::optional<bool> tied{};  // the head is the word embeddings, in the config or its part about the text
};

// Entries of another type than they should have say nothing.
ConfigSays config_says(const JsonValue& config);

}  // namespace mckpt::impl
