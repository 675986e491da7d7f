// The answer of `mckpt mappings check`: whether every tensor of a model is paired with a parameter.
//
//   {"schema": "mckpt.mappings/1", "ok": true, "family": "qwen3_moe", "architecture": "Qwen3MoeForCausalLM",
//    "parameters": 33, "tensors": 45, "data": true, "unlike_copies": 0, "unread": []}
#pragma once

#include <string>

namespace mckpt::impl {

class Output;
struct GlobalFlags;
struct HfModelOptions;

// Throws kUnaccounted, which lists what does not match, and kBadMap for a draft, with all that is left.
void check_model(Output& out, const GlobalFlags& flags, const std::string& path, HfModelOptions how);

}  // namespace mckpt::impl
