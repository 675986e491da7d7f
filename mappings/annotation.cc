#include "mappings/annotation.h"

#include "core/names.h"

namespace mckpt {
namespace {

struct KnownName {
  std::string_view glob;
  int dim;
};

// The first match decides. Names of grouped experts end in the expert's number, split keys in their part.
constexpr KnownName kKnownNames[] = {
    {"*layer_norm_weight", -1},
    {"*layer_norm_bias", -1},
    {"*embedding.word_embeddings.weight", 0},
    {"*output_layer.weight", 0},
    // attention
    {"*self_attention.linear_qkv.weight", 0},
    {"*self_attention.linear_qkv.bias", 0},
    {"*self_attention.linear_proj.weight", 1},
    {"*self_attention.linear_proj.bias", -1},
    {"*core_attention.softmax_offset", 0},
    // latent attention
    {"*self_attention.linear_q_proj.weight", 0},
    {"*self_attention.linear_q_up_proj.weight", 0},
    {"*self_attention.linear_kv_up_proj.weight", 0},
    {"*self_attention.linear_q_down_proj.weight", -1},
    {"*self_attention.linear_kv_down_proj.weight", -1},
    {"*self_attention.linear_qkv_down_proj.weight", -1},
    {"*core_attention.indexer.*", -1},
    // gated delta net
    {"*self_attention.in_proj.weight*", 0},
    {"*self_attention.conv1d.weight*", 0},
    {"*self_attention.conv1d.bias*", 0},
    {"*self_attention.dt_bias", 0},
    {"*self_attention.A_log", 0},
    {"*self_attention.out_norm.weight", -1},
    {"*self_attention.out_proj.weight", 1},
    // Mamba
    {"*mixer.in_proj.weight*", 0},
    {"*mixer.conv1d[._]weight*", 0},
    {"*mixer.conv1d[._]bias*", 0},
    {"*mixer.dt_bias", 0},
    {"*mixer.A_log", 0},
    {"*mixer.D", 0},
    {"*mixer.norm.weight", 0},
    {"*mixer.out_proj.weight", 1},
    // feed-forward, dense and experts
    {"*linear_fc1.weight*", 0},
    {"*linear_fc1.bias*", 0},
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

Partition checked(const PartitionClues& clues, int dim, PartitionEvidence evidence) {
  // A bias that goes with a split input is added once, after the sum: every rank has all of it.
  if (clues.rank == 1 && dim == 1) return {-1, evidence};
  if (dim < clues.rank) return {dim < 0 ? -1 : dim, evidence};
  throw Error(Code::kUnknownPartition,
              "the dimension along which a tensor is said to be split does not exist")
      .tensor(clues.name)
      .expected(cat("one of ", clues.rank))
      .found(dim);
}

}  // namespace

Partition partition_of(const PartitionClues& clues) {
  if (clues.file) return checked(clues, *clues.file, PartitionEvidence::kFile);
  // Without the flag or the dimension a mark is a default that nobody set.
  if (clues.mark && clues.mark->tensor_parallel && clues.mark->dim >= 0)
    return checked(clues, clues.mark->dim, PartitionEvidence::kMark);
  for (const KnownName& known : kKnownNames)
    if (glob_match(known.glob, clues.name)) return checked(clues, known.dim, PartitionEvidence::kName);
  if (is_norm_name(clues.name)) return {-1, PartitionEvidence::kNormName};
  throw Error(Code::kUnknownPartition, "nothing says how a tensor lies over the tensor-parallel ranks")
      .tensor(clues.name)
      .help("a row of a map file (--map-file) settles it");
}

std::optional<int> partition_in_file(std::span<const i64> global, std::span<const i64> sizes,
                                     bool rows_are_cut) {
  std::optional<int> cut;
  for (std::size_t d = rows_are_cut ? 1 : 0; d < global.size(); d++)
    for (std::size_t i = d; i < sizes.size(); i += global.size())
      if (sizes[i] != global[d]) {
        if (cut && *cut != static_cast<int>(d)) return std::nullopt;
        cut = static_cast<int>(d);
      }
  return cut;
}

}  // namespace mckpt
