// By the table of PEFT (TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING, 0.21).
#include "hf/adapter/lora/default_targets.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/lora/lora_config.h"

namespace mckpt::impl {
namespace {

struct Default {
  std::string_view type;
  std::array<std::string_view, 6> modules;
};
constexpr Default kDefaults[] = {
    {"t5", {"q", "v"}},
    {"mt5", {"q", "v"}},
    {"bart", {"q_proj", "v_proj"}},
    {"gpt2", {"c_attn"}},
    {"bloom", {"query_key_value"}},
    {"blip-2", {"q", "v", "q_proj", "v_proj"}},
    {"opt", {"q_proj", "v_proj"}},
    {"gptj", {"q_proj", "v_proj"}},
    {"gpt_neox", {"query_key_value"}},
    {"gpt_neo", {"q_proj", "v_proj"}},
    {"bert", {"query", "value"}},
    {"roberta", {"query", "value"}},
    {"xlm-roberta", {"query", "value"}},
    {"electra", {"query", "value"}},
    {"deberta-v2", {"query_proj", "value_proj"}},
    {"deberta", {"in_proj"}},
    {"layoutlm", {"query", "value"}},
    {"llama", {"q_proj", "v_proj"}},
    {"llama4", {"q_proj", "v_proj"}},
    {"chatglm", {"query_key_value"}},
    {"gpt_bigcode", {"c_attn"}},
    {"mpt", {"Wqkv"}},
    {"RefinedWebModel", {"query_key_value"}},
    {"RefinedWeb", {"query_key_value"}},
    {"falcon", {"query_key_value"}},
    {"btlm", {"c_proj", "c_attn"}},
    {"codegen", {"qkv_proj"}},
    {"mistral", {"q_proj", "v_proj"}},
    {"mixtral", {"q_proj", "v_proj"}},
    {"stablelm", {"q_proj", "v_proj"}},
    {"phi", {"q_proj", "v_proj", "fc1", "fc2"}},
    {"gemma", {"q_proj", "v_proj"}},
    {"gemma2", {"q_proj", "v_proj"}},
    {"gemma3_text", {"q_proj", "v_proj"}},
    {"qwen2", {"q_proj", "v_proj"}},
    {"qwen3", {"q_proj", "v_proj"}},
    {"nemotron_h", {"q_proj", "k_proj", "v_proj", "o_proj"}},
    {"rwkv", {"key", "value", "receptance", "output"}},
    {"rwkv7", {"r_proj", "k_proj", "v_proj", "o_proj", "key", "value"}},
};
// The one type whose modules are an expression.
constexpr std::string_view kGemma4 = "gemma4", kOfGemma4 = ".*language_model\\..*\\.(q_proj|v_proj)";

}  // namespace

void choose_targets(LoraConfig& config, std::string_view model_type) {
  ModuleNames& targets = config.rules.targets;
  if (targets.given) return;
  auto known = std::ranges::find(kDefaults, model_type, &Default::type);
  if (model_type == kGemma4) {
    targets.whole = std::make_shared<const ModulePattern>(std::string(kOfGemma4), ModulePattern::kWhole);
  } else if (known != std::end(kDefaults)) {
    for (std::string_view name : known->modules)
      if (!name.empty()) targets.names.emplace_back(name);
  } else if (config.parameters.empty()) {
    throw Error(Code::kBadConfig,
                "the config names no modules, and PEFT has no choice of its own for models of this type")
        .expected("target_modules or target_parameters")
        .found(model_type.empty() ? "neither, and no model_type of the base"
                                  : cat("neither, and the model_type ", escaped(model_type)))
        .help("write the modules that were trained into target_modules of adapter_config.json");
  }
  targets.given = true;
}

}  // namespace mckpt::impl
