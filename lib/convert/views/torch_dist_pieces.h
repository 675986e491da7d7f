// A torch_dist checkpoint as the tensors of an fsdp_dtensor one, by the parameters of its model. There layers
// of a kind lie in one tensor, all experts of a layer in another, and mixers are cut as no fsdp_dtensor is:
//
//   decoder.layers.mlp.experts.experts.linear_fc1.weight [layers, experts, 2f, h]
//       -->  decoder.layers.<i>.mlp.experts.linear_fc1.weight<e>_w, ..._v [f, h]
//
//   decoder.layers.<i>.mixer.in_proj.weight.z, .x, .B, .C, .dt
//       -->  decoder.layers.<i>.mixer.in_proj.weight, one after the other
//
//   optimizer.state.exp_avg.<param>
//       -->  optimizer.state.module.module.module.<param>.exp_avg
//
// The parts of mixers lie then as a single tensor-parallel rank has them.
#pragma once

#include "convert/views/piece_store.h"
#include "mappings/model/expand.h"

namespace mckpt {

// What is no parameter of the model keeps its name, behind "model.module." in the model section. Objects are
// taken along from the common state where fsdp_dtensor has a place for them. Throws kNotHeld for
// states of the optimizer that do not lie by parameter, unless only the weights are asked for.
std::unique_ptr<PieceStore> torch_dist_pieces(std::unique_ptr<Store> store, const ModelMap& map,
                                              const RunSetup& setup, bool weights_only);

}  // namespace mckpt
