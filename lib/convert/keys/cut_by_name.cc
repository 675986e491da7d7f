// The words at the end of a name, from the module on. The first row that fits decides, but for parameters
// that the families' tables have whole.
#include "convert/keys/cut_by_name.h"

#include <algorithm>

#include "mappings/names_alone.h"

namespace mckpt::impl {
namespace {

struct Row {
  std::string_view word;  // in the last two or three parts of the name
  int dimension;
};

constexpr int kWhole = -1;
constexpr Row kRows[] = {
    {"mixer.norm.weight", 0},  // the one norm over what a rank has of the inner size
    {"norm", kWhole},
    {"embedding.word_embeddings.weight", 0},
    {"output_layer.weight", 0},
    {"linear_qkv_down_proj.", kWhole},
    {"linear_q_down_proj.", kWhole},
    {"linear_kv_down_proj.", kWhole},
    {"linear_qkv.", 0},
    {"linear_q_proj.", 0},
    {"linear_q_up_proj.", 0},
    {"linear_kv_up_proj.", 0},
    {"linear_proj.weight", 1},
    {"linear_proj.bias", kWhole},
    {"linear_fc1.", 0},
    {"linear_fc2.weight", 1},
    {"linear_fc2.bias", kWhole},
    {"router.", kWhole},
    {"shared_experts.gate_weight", kWhole},
    {"in_proj.", 0},
    {"conv1d", 0},
    {"out_proj.weight", 1},
    {"out_proj.bias", kWhole},
    {"A_log", 0},
    {"dt_bias", 0},
    {"mixer.D", 0},
    {"eh_proj.", 0},
    {"patch_embed.", kWhole},
    {"pos_embed.", kWhole},
};

constexpr std::string_view kOwnModules[] = {"embedding.", "decoder.", "output_layer.", "mtp."};
constexpr std::string_view kLanguage[] = {"thinker.language_model.", "language_model."};
constexpr std::string_view kVisionLayers = "vision_model.decoder.layers.";

// The last three parts of the name.
std::string_view end_of(std::string_view parameter) {
  std::size_t dot = parameter.size();
  for (int part = 0; part < 3 && dot != parameter.npos && dot > 0; part++)
    dot = parameter.rfind('.', dot - 1);
  return dot == parameter.npos ? parameter : parameter.substr(dot + 1);
}

}  // namespace

std::optional<int> cut_by_name(std::string_view parameter) {
  if (parameter.empty()) return std::nullopt;
  const std::string_view end = end_of(parameter);
  for (const Row& row : kRows)
    if (end.find(row.word) != end.npos)
      return row.dimension != kWhole && whole_by_name(parameter) ? kWhole : row.dimension;
  return std::nullopt;
}

bool is_own_module(std::string_view parameter) {
  if (parameter.starts_with(kVisionLayers)) return true;
  for (std::string_view front : kLanguage)
    if (parameter.starts_with(front)) {
      parameter.remove_prefix(front.size());
      break;
    }
  return std::ranges::any_of(kOwnModules, [&](std::string_view m) { return parameter.starts_with(m); });
}

CutRows cut_rows(std::string_view parameter) {
  const std::string_view end = end_of(parameter);
  auto has = [&](std::string_view word) { return end.find(word) != end.npos; };
  if (has("linear_fc1.")) return CutRows::kGated;
  return has("in_proj.") || has("conv1d") ? CutRows::kSections : CutRows::kTogether;
}

}  // namespace mckpt::impl
