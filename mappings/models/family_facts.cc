// One line a family, in the order of the list of families (mappings/registry.cc).
#include "mappings/models/family_facts.h"

namespace mckpt::impl {
namespace {

constexpr FamilyFacts kFacts[] = {
    {"llama", "meta-llama/Llama-3.1-8B, meta-llama/Llama-3.3-70B-Instruct", "", "1, tp2"},
    {"qwen2", "Qwen/Qwen2.5-7B-Instruct, Qwen/Qwen2.5-72B", "awq, gptq", "tp2"},
    {"qwen3", "Qwen/Qwen3-8B, Qwen/Qwen3-32B", "fp8 blocks, awq", "1, pp3, tp2, tp4"},
    {"qwen3_moe", "Qwen/Qwen3-30B-A3B, Qwen/Qwen3-235B-A22B", "fp8 blocks", "1, ep2, tp2 ep2 etp2, tp2 ep4"},
    {"qwen3_next", "Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8 blocks", "1, tp2 ep4"},
    {"qwen3_5", "Qwen/Qwen3.5-27B, Qwen/Qwen3.6-27B", "fp8 blocks", "1, tp2"},
    {"qwen3_5_moe", "Qwen/Qwen3.5-35B-A3B, Qwen/Qwen3.6-35B-A3B", "fp8 blocks", "tp2 ep4"},
    {"qwen3_5_text", "text models of Qwen3.5", "", ""},
    {"qwen3_5_moe_text", "text models of Qwen3.5 with experts", "", ""},
    {"qwen3_vl", "Qwen/Qwen3-VL-8B-Instruct", "fp8 blocks", "1, tp2"},
    {"qwen3_vl_moe", "Qwen/Qwen3-VL-30B-A3B-Instruct", "fp8 blocks", "1, tp2 ep4"},
    {"nemotron_h", "nvidia/Nemotron-H-8B-Base-8K, nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "fp8, nvfp4",
     "1, ep2, tp2, tp2 ep4"},
    {"deepseek_v3", "deepseek-ai/DeepSeek-V3, deepseek-ai/DeepSeek-R1, moonshotai/Moonlight-16B-A3B", "fp8 blocks",
     "1, ep2, tp2, tp2 ep4"},
    {"gpt_oss", "openai/gpt-oss-20b, openai/gpt-oss-120b", "mxfp4", "1, ep2, tp2, tp2 ep4"},
};

}  // namespace

std::span<const FamilyFacts> all_family_facts() { return kFacts; }

const FamilyFacts* facts_of(std::string_view family) {
  for (const FamilyFacts& facts : kFacts)
    if (facts.family == family) return &facts;
  return nullptr;
}

}  // namespace mckpt::impl
