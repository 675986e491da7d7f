// A line for each family. The grids are written by tests/program/general/family_facts.py --update.
#include "mappings/models/family_facts.h"

namespace mckpt::impl {
namespace {

constexpr FamilyFacts kFacts[] = {
    {"llama", "meta-llama/Llama-3.1-8B, meta-llama/Llama-3.3-70B-Instruct", "", "1, tp2"},
    {"qwen2", "Qwen/Qwen2.5-7B-Instruct, Qwen/Qwen2.5-72B", "awq, gptq", "tp2"},
    {"qwen3", "Qwen/Qwen3-8B, Qwen/Qwen3-32B", "fp8 blocks, awq", "1, pp2, pp3, tp2, tp4"},
    {"qwen3_moe", "Qwen/Qwen3-30B-A3B, Qwen/Qwen3-235B-A22B", "fp8 blocks", "1, ep2, tp2 ep2 etp2, tp2 ep4"},
    {"qwen3_next", "Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8 blocks", "1, tp2 ep4"},
    {"qwen3_5", "Qwen/Qwen3.5-27B, Qwen/Qwen3.6-27B", "fp8 blocks", "1, tp2"},
    {"qwen3_5_moe", "Qwen/Qwen3.5-35B-A3B, Qwen/Qwen3.6-35B-A3B", "fp8 blocks", "tp2 ep4"},
    {"qwen3_5_text", "text models of Qwen3.5", "", ""},
    {"qwen3_5_moe_text", "text models of Qwen3.5 with experts", "", "1, tp2, tp2 cp2, tp4 ep2"},
    {"qwen3_vl", "Qwen/Qwen3-VL-8B-Instruct", "fp8 blocks", "1, tp2"},
    {"qwen3_vl_moe", "Qwen/Qwen3-VL-30B-A3B-Instruct", "fp8 blocks", "1, tp2 ep4"},
    {"nemotron_h", "nvidia/Nemotron-H-8B-Base-8K, nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "fp8, nvfp4",
     "1, ep2, tp2, tp2 cp2, tp2 ep2 etp2, tp2 ep4, tp4"},
    {"deepseek_v3", "deepseek-ai/DeepSeek-V3, deepseek-ai/DeepSeek-R1, moonshotai/Kimi-K2-Instruct",
     "fp8 blocks, int4", "1, ep2, ep8, tp2, tp2 cp2 ep2, tp2 ep2, tp2 ep4, tp4 ep2"},
    {"gpt_oss", "openai/gpt-oss-20b, openai/gpt-oss-120b", "mxfp4", "1, ep2, tp2, tp2 ep4"},
    {"qwen2_5_vl", "Qwen/Qwen2.5-VL-7B-Instruct, Qwen/Qwen2.5-VL-72B-Instruct", "awq", "1, tp2, tp2 cp2"},
    {"qwen2_audio", "Qwen/Qwen2-Audio-7B-Instruct", "", "1, tp2, tp4"},
    {"qwen3_omni_moe", "Qwen/Qwen3-Omni-30B-A3B-Instruct", "", "1, tp2, tp2 cp2, tp4 ep2"},
    {"mistral3", "mistralai/Mistral-Small-3.1-24B-Instruct-2503, mistralai/Ministral-3-8B-Instruct-2512",
     "fp8", "1, tp2, tp4"},
    {"bailing_moe_v2", "inclusionAI/Ling-mini-2.0, inclusionAI/Ling-flash-2.0", "fp8 blocks",
     "1, ep2, tp2, tp2 cp2, tp4 ep2"},
    {"sarvam_moe", "sarvamai/sarvam-30b", "", "1, ep8, tp2 ep2 etp2, tp2 ep4, tp4"},
    {"mimo", "XiaomiMiMo/MiMo-7B-Base", "", "1, pp2, tp2, tp2 cp2"},
    {"falcon_h1", "tiiuae/Falcon-H1-7B-Base, tiiuae/Falcon-H1-34B-Base", "gptq", "1, tp2 cp2"},
    {"minimax_m3_vl", "MiniMaxAI/MiniMax-M3", "", "1, tp2, tp2 cp2, tp4 ep2"},
    {"gemma3", "google/gemma-3-4b-it, google/gemma-3-27b-it", "", "1, tp2"},
    {"glm4v_moe", "zai-org/GLM-4.5V, zai-org/GLM-4.6V", "fp8", "1, tp2, tp2 cp2, tp2 ep2 etp2, tp4"},
    {"gemma4_text", "text models of Gemma 4", "", "1, ep2, tp2, tp2 cp2, tp2 ep2 etp2, tp4"},
    {"gemma4", "google/gemma-4-26B-A4B-it, google/gemma-4-31B-it", "", "1, tp2, tp2 cp2, tp4 ep2"},
    {"mistral", "mistralai/Mistral-7B-v0.3, mistralai/Mistral-Nemo-Base-2407", "awq, gptq",
     "1, tp2, tp2 cp2, tp8"},
    {"seed_oss", "ByteDance-Seed/Seed-OSS-36B-Base", "", ""},
    {"gemma", "google/gemma-2b, google/gemma-7b", "", "1, tp2 cp2, tp8"},
    {"gemma2", "google/gemma-2-2b, google/gemma-2-27b", "", "1, tp2, tp8"},
    {"gemma3_text", "google/gemma-3-270m, google/gemma-3-1b-pt", "", "1, pp2, tp2, tp4"},
    {"exaone4", "LGAI-EXAONE/EXAONE-4.0-1.2B, LGAI-EXAONE/EXAONE-4.0-32B", "fp8, awq", "1, tp2"},
    {"olmo2", "allenai/OLMo-2-1124-7B, allenai/OLMo-2-0325-32B", "", ""},
    {"olmo3", "allenai/Olmo-3-1025-7B, allenai/Olmo-3-1125-32B", "", ""},
    {"glm4", "zai-org/GLM-4-9B-0414, zai-org/GLM-4-32B-0414", "", ""},
    {"nemotron", "nvidia/Minitron-4B-Base", "", "1, tp2, tp2 cp2"},
    {"deepseek_v2", "deepseek-ai/DeepSeek-V2, deepseek-ai/DeepSeek-V2.5", "",
     "1, tp2, tp2 cp2, tp2 ep2 etp2, tp4"},
    {"glm4_moe", "zai-org/GLM-4.5, zai-org/GLM-4.6, zai-org/GLM-4.7", "fp8",
     "1, ep2, tp2, tp2 cp2, tp2 ep2 etp2, tp4"},
    {"glm4_moe_lite", "zai-org/GLM-4.7-Flash", "", "1, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2"},
    {"glm_moe_dsa", "zai-org/GLM-5, zai-org/GLM-5.1", "fp8", "1, tp2, tp2 cp2, tp2 ep2 etp2, tp4"},
    {"deepseek_v32", "deepseek-ai/DeepSeek-V3.2-Exp, deepseek-ai/DeepSeek-V3.2", "fp8 blocks", ""},
    {"qwen2_moe", "Qwen/Qwen1.5-MoE-A2.7B, Qwen/Qwen2-57B-A14B", "gptq", ""},
    {"olmoe", "allenai/OLMoE-1B-7B-0924", "", "1, ep2, tp2, tp2 cp2, tp2 ep2 etp2, tp4"},
    {"mixtral", "mistralai/Mixtral-8x7B-v0.1, mistralai/Mixtral-8x22B-v0.1", "awq, gptq", ""},
    {"minimax_m2", "MiniMaxAI/MiniMax-M2, MiniMaxAI/MiniMax-M2.5", "fp8 blocks",
     "1, ep2, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2"},
    {"hy_v3", "tencent/Hy3-preview, without its MTP layer", "fp8", "1, tp2, tp2 cp2, tp2 ep2 etp2, tp4"},
    {"exaone_moe", "LGAI-EXAONE/K-EXAONE-236B-A23B", "fp8", "1, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2"},
    {"ernie4_5_moe", "baidu/ERNIE-4.5-21B-A3B-PT, baidu/ERNIE-4.5-300B-A47B-PT", "fp8",
     "1, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2"},
};

}  // namespace

std::span<const FamilyFacts> all_family_facts() { return kFacts; }

const FamilyFacts* facts_of(std::string_view family) {
  for (const FamilyFacts& facts : kFacts)
    if (facts.family == family) return &facts;
  return nullptr;
}

}  // namespace mckpt::impl
