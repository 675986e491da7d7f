// A torch_dist checkpoint as the tensors of an fsdp_dtensor checkpoint, by the parameters of its model. In
// torch_dist, all layers of a kind are one tensor, all experts of a layer another, and mixers are cut in
// their own way:
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
// The parts of mixers are then in the order of a single tensor-parallel rank. Tensors that are not parameters
// of the model keep their names, after "model.module." in the model section.
#pragma once

#include <memory>
#include <span>

#include "convert/facts/translated_run.h"
#include "core/base/int.h"

namespace mckpt::impl {

class ModelMap;
class Store;
struct LayerPattern;
struct ModelParameter;
struct RunSetup;

// States of the optimizer that are not stored by parameter.
enum class OddStates : u8 {
  kIgnored,  // only the weights are wanted
  kRefused,
  kKept  // have the names that they have on disk
};

// Takes the store into the result. The map may be discarded afterwards. Throws kNotHeld for states of the
// optimizer that are not stored by parameter, if they are refused; kUnaccounted for layers or experts that
// the model does not have; kBadSplit.
TranslatedRun torch_dist_pieces(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup,
                                OddStates odd);

// Whether the norms in front of experts have the name that Megatron's own modules give them. pre: a
// torch_dist checkpoint of a model with these parameters, and these groups; null: none.
bool has_own_norms_of_experts(const Store& torch_dist, std::span<const ModelParameter> parameters,
                              const LayerPattern* groups);

}  // namespace mckpt::impl
