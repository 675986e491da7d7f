// Each entry has a place in one of three tables. An entry in none of them may only have a value that says
// "nothing".
#include "hf/adapter/lora/config_entries.h"

#include <algorithm>

#include "io/json/json.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRead[] = {"peft_type",           "r",
                                      "lora_alpha",          "use_rslora",
                                      "fan_in_fan_out",      "use_dora",
                                      "lora_bias",           "bias",
                                      "rank_pattern",        "alpha_pattern",
                                      "target_parameters",   "base_model_name_or_path",
                                      "init_lora_weights",   "target_modules",
                                      "exclude_modules",     "modules_to_save",
                                      "layers_pattern",      "layers_to_transform",
                                      "ensure_weight_tying", "trainable_token_indices",
                                      "auto_mapping",        "lora_dropout"};
// Entries that are read and only say which base was trained, and how.
constexpr std::string_view kOfTraining[] = {"auto_mapping", "base_model_name_or_path", "lora_dropout"};
// How training began, and what it is for: the names and values of the tensors say the rest.
constexpr std::string_view kWithoutEffect[] = {"eva_config",     "inference_mode",    "megatron_core",
                                               "peft_version",   "qalora_group_size", "revision",
                                               "runtime_config", "task_type"};
// Kinds of LoRA that PEFT computes where the entry is there, also if it is empty: it has defaults for all
// that is in them.
constexpr std::string_view kKinds[] = {"arrow_config", "kasa_config", "monteclora_config", "use_bdlora",
                                       "velora_config"};
template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view text) {
  return std::ranges::find(table, text) != std::end(table);
}

// null, false, "" and nothing at all.
bool is_empty(const JsonValue& v) {
  switch (v.type()) {
    case JsonType::kNull:
      return true;
    case JsonType::kBool:
      return !v.boolean("");
    case JsonType::kNumber:
      return false;
    case JsonType::kString:
      return v.string("").empty();
    case JsonType::kArray:
      return v.array("").empty();
    case JsonType::kObject:
      return v.object("").empty();
  }
  return false;
}

}  // namespace

bool is_known_entry(std::string_view key) { return has(kRead, key) || has(kWithoutEffect, key); }
bool is_without_effect(std::string_view key) { return has(kWithoutEffect, key) || has(kOfTraining, key); }

bool says_nothing(std::string_view key, const JsonValue& value) {
  return has(kKinds, key) ? value.is(JsonType::kNull) : is_empty(value);
}

}  // namespace mckpt::impl
