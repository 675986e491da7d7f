// The tensors of an adapter, taken apart by their names: what each module has, and what is saved whole.
//
//   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight     module model.layers.0.self_attn.q_proj
//   base_model.model.lm_head.weight                                    whole: lm_head.weight
//   base_model.model.model.embed_tokens.base_layer.weight              whole: model.embed_tokens.weight
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
enum class DType : u8;

inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

// The tensors of a module in the adapter: their numbers, -1 if there is none. `pairs`: by how many wrappers
// are around the pair of factors.
struct AdapterModule {
  struct Pair {
    i64 a = -1, b = -1;
  };
  std::map<i64, Pair> pairs{};
  Pair embedding{};
  i64 bias = -1, magnitude = -1, tokens = -1;
};

struct AdapterNames {
  std::map<std::string, AdapterModule> modules{};
  std::vector<std::pair<i64, std::string>> whole{};  // tensors, and the names of those that they replace
  i64 unused = -1;  // a tensor that a module has twice, or that belongs to no pair
};

// The types that adapters are computed with: float32, bfloat16, float16.
bool is_computed_type(DType dtype);

// How to mend the name of a factor that has the adapter's name in it, as the model in memory has it and no
// file of PEFT: "x.lora_A.default.weight". "" for other names.
std::string help_of_named_factor(std::string_view name);

// Throws kUnsupportedTensor for another type, kUnaccounted for a name that PEFT does not give.
AdapterNames adapter_names(const Store& adapter);

}  // namespace mckpt::impl
