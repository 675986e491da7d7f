// What people want to know of a family before they try it: models on the hub that have it, the quantised
// forms in which they are released, and the grids on which real Megatron ranks were compared with its table
// (test_data/golden). `mckpt mappings list` and README show these facts; a test keeps them true and complete.
#pragma once

#include <span>
#include <string_view>

namespace mckpt::impl {

struct FamilyFacts {
  std::string_view family;
  std::string_view examples;   // "Qwen/Qwen3-8B, Qwen/Qwen3-32B"
  std::string_view quantised;  // "fp8, gptq"; "" if no release is known
  std::string_view tested;     // "tp2 ep4, pp3": sizes that are 1 are left out; "1" for one rank alone
};

std::span<const FamilyFacts> all_family_facts();
// Null for a family without facts (a test asks for all).
const FamilyFacts* facts_of(std::string_view family);

}  // namespace mckpt::impl
