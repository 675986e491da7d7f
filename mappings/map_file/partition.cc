// Decides how a parameter is split when its row names no rule: by its mark, by a list of known names, or as a
// norm.
//
//   decoder.layers.0.mlp.linear_fc2.weight     known name              dimension 1: rule row
//   decoder.layers.0.my_norm.weight            ends in norm.weight     whole on every rank: rule replicate
//   decoder.layers.0.mlp.linear_fc1.weight     known and fused         refused: the row must name the rule
//   decoder.layers.0.adapter.weight            no evidence             refused
#include "mappings/map_file/partition.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/hybrid/spellings.h"

namespace mckpt::impl {
namespace {

// A glob and the dimension; -1: whole on every rank.
struct KnownName {
  std::string_view glob;
  int dim;
};

constexpr int kFused = -2;  // a fused parameter, whose rule the name does not determine

// The first match decides. Names of grouped experts end in the expert's number.
constexpr KnownName kKnownNames[] = {
    {"*layer_norm_weight", -1},
    {"*layer_norm_bias", -1},
    {"*embedding.word_embeddings.weight", 0},
    {"*output_layer.weight", 0},
    // attention
    {"*self_attention.linear_qkv.weight", kFused},
    {"*self_attention.linear_qkv.bias", kFused},
    {"*self_attention.linear_proj.weight", 1},
    {"*self_attention.linear_proj.bias", -1},
    {"*core_attention.softmax_offset", 0},
    // latent attention
    {"*self_attention.linear_q_proj.weight", 0},
    {"*self_attention.linear_q_up_proj.weight", 0},
    {"*self_attention.linear_kv_up_proj.weight", 0},
    {"*self_attention.linear_q_down_proj.weight", -1},
    {"*self_attention.linear_kv_down_proj.weight", -1},
    {"*self_attention.linear_qkv_down_proj.weight", kFused},
    {"*core_attention.indexer.*", -1},
    // gated delta net
    {"*self_attention.in_proj.weight", kFused},
    {"*self_attention.conv1d.weight", kFused},
    {"*self_attention.conv1d.bias", kFused},
    {"*self_attention.dt_bias", 0},
    {"*self_attention.A_log", 0},
    {"*self_attention.out_norm.weight", -1},
    {"*self_attention.out_proj.weight", 1},
    // Mamba
    {"*mixer.in_proj.weight", kFused},
    {"*mixer.conv1d_weight", kFused},
    {"*mixer.conv1d_bias", kFused},
    {"*mixer.dt_bias", 0},
    {"*mixer.A_log", 0},
    {"*mixer.D", 0},
    {"*mixer.norm.weight", 0},
    {"*mixer.out_proj.weight", 1},
    // feed-forward, dense and experts
    {"*linear_fc1.weight*", kFused},
    {"*linear_fc1.bias*", kFused},
    {"*linear_fc2.weight*", 1},
    {"*linear_fc2.bias*", -1},
    {"*router.weight", -1},
    {"*router.bias", -1},
    {"*router.expert_bias", -1},
    {"*shared_experts.gate_weight", -1},
    {"*fc[12]_latent_proj.weight", -1},
    // multi-token prediction, vision
    {"*eh_proj.weight", 0},
    {"*patch_embed.proj.weight", -1},
    {"*patch_embed.proj.bias", -1},
    {"*pos_embed.weight", -1},
};

bool is_norm_name(std::string_view name) {
  return glob_match("*norm.weight", name) || glob_match("*norm.bias", name);
}

// A wrong guess would give every rank wrong weights without any error, so what is not known is refused.
[[noreturn]] void refuse(const PartitionClues& clues, std::string_view why) {
  throw Error(Code::kUnknownPartition, std::string(why))
      .tensor(clues.name)
      .help("give the row a \"rule\", or a \"partition_dim\" as Megatron marks the parameter: 0, 1 or -1");
}

Partition checked(const PartitionClues& clues, int dim, PartitionEvidence evidence) {
  // The bias of a layer with split input is added once, after the sum: every rank has all of it.
  if (clues.rank == 1 && dim == 1) return {-1, evidence};
  if (dim >= -1 && dim < std::min(clues.rank, 2)) return {dim, evidence};
  throw Error(Code::kUnknownPartition, "no rule splits a tensor along this dimension")
      .tensor(clues.name)
      .expected(cat("-1 to ", std::min(clues.rank, 2) - 1))
      .found(dim);
}

}  // namespace

// A mark of Megatron counts more than a name.
Partition partition_of(const PartitionClues& clues) {
  if (clues.annotation) return checked(clues, *clues.annotation, PartitionEvidence::kAnnotation);
  const std::string name = with_usual_conv(clues.name);
  for (const KnownName& known : kKnownNames) {
    if (!glob_match(known.glob, name)) continue;
    if (known.dim == kFused) refuse(clues, "a fused parameter needs a rule");
    return checked(clues, known.dim, PartitionEvidence::kName);
  }
  if (is_norm_name(clues.name)) return {-1, PartitionEvidence::kNormName};
  refuse(clues, "the partition of a parameter over the tensor-parallel ranks is not known");
}

std::string_view rule_of(const Partition& partition) {
  return partition.dim < 0 ? "replicate" : partition.dim == 0 ? "column" : "row";
}

std::string_view evidence_text(PartitionEvidence evidence) {
  switch (evidence) {
    case PartitionEvidence::kAnnotation:
      return "its partition_dim";
    case PartitionEvidence::kName:
      return "its name";
    case PartitionEvidence::kNormName:
      return "its name, which is that of a norm";
  }
  return "";
}

}  // namespace mckpt::impl
