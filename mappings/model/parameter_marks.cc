// Computes the marks of a parameter from its row and rule, exceptions included: what Megatron does is not
// always what its layout would suggest. Attention sinks are split over the heads without a mark, and so are
// norms over all heads; the down projections of latent attention, of latent experts and the linear layers of
// an indexer are whole on every rank and marked as split along dimension 0.
#include "mappings/model/parameter_marks.h"

#include "core/fsdp/grid.h"
#include "mappings/family.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool is_expert_bias(const ModelParameter& p) { return p.expert() && has(p.row->megatron, ".bias"); }

}  // namespace

bool is_split_norm(const ModelParameter& p) {
  return p.row->megatron.ends_with("_layernorm.weight") && p.holding->partition_dim >= 0;
}

bool decays(const ModelParameter& p) { return p.shape().rank() > 1 && !p.name.ends_with(".bias"); }

ParameterMarks marks_of(const ModelParameter& p, const Grid& grid) {
  std::string_view row = p.row->megatron;
  ParameterMarks m;
  m.logical = global_shape(*p.holding, p.part.count).shape;
  m.allreduce = !(p.expert() && (grid.ep > 1 || grid.etp != grid.tp));
  m.embedding_or_output =
      has(p.name, "embedding.word_embeddings.weight") || has(p.name, "output_layer.weight");
  if (p.buffer()) return m;
  // A parameter that is split over the heads without being a linear layer is not marked.
  if (row.ends_with("softmax_offset") || is_split_norm(p)) return m;
  int dim = p.holding->partition_dim;
  m.tensor_model_parallel = dim >= 0;
  m.partition_dim = dim;
  // These are replicated linear layers, but Megatron marks a dimension.
  if (row.ends_with("_down_proj.weight") || row.ends_with("_latent_proj.weight") ||
      has(row, ".indexer.linear_"))
    m.partition_dim = 0;
  if (p.row->rule == "gated_mlp" || p.row->rule == "gated_mlp_joined") m.partition_stride = 2;
  bool replicated = dim < 0 && !is_expert_bias(p);
  m.sequence_parallel = grid.tp > 1 && replicated && p.section->tower == Tower::kText;
  return m;
}

}  // namespace mckpt::impl
