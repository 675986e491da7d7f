// The table of models is what save_pretrained() of transformers 5.23 writes
// (test_data/own_names/make_disk_names.py, tests/judges/disk_names.py).
#include "convert/own/disk_rules.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

constexpr StackRule kGated[] = {
    {".experts.gate_up_proj", ".experts.{E}.gate_proj.weight", ".experts.{E}.up_proj.weight"},
    {".experts.down_proj", ".experts.{E}.down_proj.weight"},
};
constexpr StackRule kNumbered[] = {
    {".experts.gate_up_proj", ".experts.{E}.w1.weight", ".experts.{E}.w3.weight"},
    {".experts.down_proj", ".experts.{E}.w2.weight"},
};
constexpr StackRule kNotGated[] = {
    {".mixer.experts.up_proj", ".mixer.experts.{E}.up_proj.weight"},
    {".mixer.experts.down_proj", ".mixer.experts.{E}.down_proj.weight"},
};

// Vision and language. The folder has the names that version 4 of transformers had in memory, which stay.
constexpr NameRule kLlava[] = {
    {"language_model.model.", "language_model.model."},
    {"language_model.lm_head.", "language_model.lm_head."},
    {"lm_head.", "language_model.lm_head."},
    {"model.language_model.", "language_model.model."},
    {"model.", ""},
    {"language_model.", "language_model.model."},  // of the class without a head: LlavaModel
};
constexpr NameRule kQwenVl[] = {{"model.language_model.", "model."}, {"model.visual.", "visual."}};
constexpr NameRule kBackbone[] = {{"model.", "backbone."}};
constexpr NameRule kEmbedOut[] = {{"lm_head.", "embed_out."}};

constexpr NameRule kSparse[] = {{"mlp.", "block_sparse_moe."}};
constexpr NameRule kSparseRouter[] = {{"mlp.router.", "block_sparse_moe.gate."},
                                      {"mlp.", "block_sparse_moe."}};
constexpr NameRule kGranite[] = {
    {"block_sparse_moe.experts.gate_up_proj", "block_sparse_moe.input_linear.weight"},
    {"block_sparse_moe.experts.down_proj", "block_sparse_moe.output_linear.weight"},
    {"block_sparse_moe.router.weight", "block_sparse_moe.router.layer.weight"},
};
constexpr NameRule kAria[] = {{"experts.gate_up_proj", "experts.fc1.weight"},
                              {"experts.down_proj", "experts.fc2.weight"}};
constexpr NameRule kErnie[] = {{"mlp.gate.moe_statics.", "mlp.moe_statics."}};
constexpr NameRule kExaone[] = {{"mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias"}};
constexpr NameRule kHunyuan3[] = {{"mlp.e_score_correction_bias", "mlp.expert_bias"},
                                  {"mlp.gate.", "mlp.router.gate."},
                                  {"mlp.shared_experts.", "mlp.shared_mlp."}};
constexpr NameRule kVit[] = {
    {"attention.q_proj.", "attention.attention.query."},
    {"attention.k_proj.", "attention.attention.key."},
    {"attention.v_proj.", "attention.attention.value."},
    {"attention.o_proj.", "attention.output.dense."},
    {"mlp.fc1.", "intermediate.dense."},
    {"mlp.fc2.", "output.dense."},
    {"layers.", "encoder.layer."},
};

constexpr DiskRules kModels[] = {
    {"afmoe", kGated},
    {"aria", {}, kLlava, kAria},
    {"aya_vision", {}, kLlava},
    {"beit", {}, {}, kVit},
    {"deepseek_v2", kGated},
    {"deepseek_v3", kGated},
    {"deepseek_v32", kGated},
    {"deit", {}, {}, kVit},
    {"dinov2", {}, {}, std::span(kVit).first(4)},
    {"dots1", kGated},
    {"ernie4_5_moe", kGated, {}, kErnie},
    {"exaone_moe", kGated, {}, kExaone},
    {"flex_olmo", kGated},
    {"fuyu", {}, kLlava},
    {"gemma3", {}, kLlava},
    {"glm4_moe", kGated},
    {"glm4_moe_lite", kGated},
    {"glm4v_moe", kGated},
    {"glm_moe_dsa", kGated},
    {"gpt_neox", {}, kEmbedOut},
    {"gpt_oss"},
    {"granitemoe", {}, {}, kGranite},
    {"granitemoehybrid", {}, {}, kGranite},
    {"granitemoeshared", {}, {}, kGranite},
    {"hunyuan_v1_moe", kGated},
    {"hy_v3", kGated, {}, kHunyuan3},
    {"internvl", {}, kLlava},
    {"jamba", kGated},
    {"lfm2_moe", kNumbered},
    {"llava", {}, kLlava},
    {"llava_next", {}, kLlava},
    {"llava_next_video", {}, kLlava},
    {"llava_onevision", {}, kLlava},
    {"minimax", kNumbered, {}, kSparse},
    {"minimax_m2", kNumbered, {}, kSparse},
    {"mistral3", {}, kLlava},
    {"mixtral", kNumbered, {}, kSparse},
    {"mllama", {}, kLlava},
    {"nemotron_h", kNotGated, kBackbone},
    {"olmoe", kGated},
    {"paligemma", {}, kLlava},
    {"phimoe", kNumbered, {}, kSparseRouter},
    {"qwen2_5_vl", {}, kQwenVl},
    {"qwen2_audio", {}, kLlava},
    {"qwen2_moe", kGated},
    {"qwen2_vl", {}, kQwenVl},
    {"qwen3_5_moe", kGated},
    {"qwen3_5_moe_text", kGated},
    {"qwen3_moe", kGated},
    {"qwen3_next", kGated},
    {"qwen3_vl_moe"},
    {"solar_open", kGated},
    {"vipllava", {}, kLlava},
    {"vit", {}, {}, kVit},
    {"voxtral", {}, kLlava},
};

// Where the words of a rule are in a name as whole words; npos: nowhere.
std::size_t place_of(std::string_view name, std::string_view words) {
  for (std::size_t at = name.find(words); at != name.npos; at = name.find(words, at + 1))
    if ((at == 0 || name[at - 1] == '.') && (words.ends_with('.') || at + words.size() == name.size()))
      return at;
  return name.npos;
}

}  // namespace

const DiskRules* disk_rules(std::string_view model_type) {
  auto rules = std::ranges::find(kModels, model_type, &DiskRules::model_type);
  return rules == std::end(kModels) ? nullptr : rules;
}

std::string name_on_disk(std::string_view name, const DiskRules* rules) {
  std::string out(name);
  if (rules == nullptr) return out;
  auto front = std::ranges::find_if(rules->fronts,
                                    [&](const NameRule& rule) { return name.starts_with(rule.memory); });
  if (front != rules->fronts.end()) out.replace(0, front->memory.size(), front->disk);
  for (const NameRule& rule : rules->words)
    if (std::size_t at = place_of(out, rule.memory); at != out.npos)
      out.replace(at, rule.memory.size(), rule.disk);
  return out;
}

}  // namespace mckpt::impl
