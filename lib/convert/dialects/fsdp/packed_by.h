// Who packed a checkpoint: the engine of Megatron-FSDP, its units, strategy and ranks, recognised by names
// and boxes alone. The checkpoint stores none of it, and its args may be lost, or be of another run.
//
//   Megatron-FSDP v1, optim_grads_params, units TransformerLayer; tp=1 dp*cp=2; chunk factors 96, 480
//   Mamba layers are in the root group: the run had TransformerLayer alone as unit
//
// Each packing that a run can have had is tried (packing_guess.h). Where none gives all boxes, the nearest
// one is named, with the first parameter that disagrees.
//
// Other writers use such names too: torch FSDP2 has the names of v2. Their boxes are even cuts, so they are
// not taken for Megatron-FSDP's, and neither are a state dict of one rank and one whose boxes fit nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/dialects/fsdp/packing_guess.h"
#include "mappings/fsdp/setup.h"

namespace mckpt::impl {

class Store;
struct RunSizes;

struct PackedBy {
  PackingGuess guess;
  GuessResult result;
  // Nothing is cut that would tell strategies and units apart: no buffer has more than one shard.
  bool no_trace = false;
  std::vector<std::string>
      units{};  // classes of layers that are units; modules where names are not Megatron's
  std::vector<std::string> remarks{};  // sentences without a full stop
  bool has_transformer_layers = false, has_mamba_layers = false, has_experts = false;
  // The recipes of weights in 8 bits that pack so; none for a packing without such weights.
  std::vector<Fp8Recipe> recipes{};

  bool fits() const { return result.fits(); }
  // The strategies that pack so; none without a trace.
  std::vector<Strategy> strategies() const;
};

// Nothing for a store that no run of Megatron-FSDP wrote, or where nothing shows that one did.
// Where several packings give all boxes, one of the ranks that the args of the run say is taken first.
std::optional<PackedBy> packed_by(const Store& store);
// Where the args of the run and its boxes contradict each other: "tp=2 by the args and 1 by the boxes";
// nothing of what boxes do not show. Data-parallel ranks count context-parallel ones, which have no trace of
// their own.
std::vector<std::string> contradictions(const PackedBy& by, const RunSizes& args);

// "Megatron-FSDP v1, optim_grads_params, units TransformerLayer; tp=1 dp*cp=2; chunk factors 96, 480"
std::string to_string(const PackedBy& by);
// "decoder.layers.0.mlp.linear_fc1.weight_w, rank 1: expected [58, 0] + [58, 96], found ..."; "" if all
// agree.
std::string disagreement_text(const Store& store, const PackedBy& by);

}  // namespace mckpt::impl
