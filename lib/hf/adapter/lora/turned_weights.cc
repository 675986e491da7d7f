// By the names of modules and the types of models that have a Conv1D in transformers.
#include "hf/adapter/lora/turned_weights.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/adapter/lora/base_facts.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kModules[] = {"c_attn", "q_attn", "c_proj", "c_fc"};
constexpr std::string_view kTypes[] = {"gpt2", "openai-gpt",   "imagegpt",    "decision_transformer",
                                       "clvp", "clvp_encoder", "clvp_decoder"};

template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view text) {
  return std::ranges::find(table, text) != std::end(table);
}

}  // namespace

bool is_turned_weight(std::string_view module, const BaseFacts& facts, bool says_turned, i64 rows,
                      i64 columns, std::span<const i64> weight) {
  const bool named = has(kModules, module.substr(module.rfind('.') + 1)), typed = !facts.model_type.empty();
  if (named && has(kTypes, facts.model_type)) return true;
  if (!named && (typed || !says_turned)) return false;
  // Some types have modules of these names as nn.Linear; programs have types of their own.
  if (rows != columns) return weight.size() == 2 && weight[0] == columns && weight[1] == rows;
  if (!says_turned) return false;
  if (named && !typed) return true;
  throw Error(
      Code::kAmbiguousLayout,
      "neither the shape of the weight nor the type of the model says whether it is [in, out], as fan_in_fan_out has it, and PEFT goes by the class of the module")
      .expected("a Conv1D of transformers, or a weight with two sizes")
      .found(dims_to_string(weight))
      .help("merge it where it was trained (merge_and_unload), and save the model");
}

}  // namespace mckpt::impl
