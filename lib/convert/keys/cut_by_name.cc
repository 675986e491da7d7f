// The words at the end of a name, from the module on. The first row that fits decides.
#include "convert/keys/cut_by_name.h"

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

}  // namespace

std::optional<int> cut_by_name(std::string_view parameter) {
  if (parameter.empty()) return std::nullopt;
  std::size_t dot = parameter.size();
  for (int part = 0; part < 3 && dot != parameter.npos && dot > 0; part++)
    dot = parameter.rfind('.', dot - 1);
  const std::string_view end = dot == parameter.npos ? parameter : parameter.substr(dot + 1);
  for (const Row& row : kRows)
    if (end.find(row.word) != end.npos) return row.dimension;
  return std::nullopt;
}

}  // namespace mckpt::impl
