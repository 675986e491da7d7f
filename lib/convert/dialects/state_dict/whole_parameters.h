// A checkpoint with the names of fsdp_dtensor in which every parameter is whole: the parts of fused
// parameters are put together, as Megatron-FSDP v2 stores them, and so are the states of the optimizer.
//
//   model.module.decoder.layers.1.mlp.linear_fc1.weight_w [14, 12]      model.module.decoder.layers.1.mlp.
//   model.module.decoder.layers.1.mlp.linear_fc1.weight_v [14, 12]  -->   linear_fc1.weight [28, 12]
#pragma once

#include <memory>
#include <string>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class ModelMap;
class PieceStore;
class Store;
struct RunSetup;

// The view, and the parameters that it made whole, whose rows are in the order in which one rank has them. A
// tensor whose other parts are missing, or have other shapes, stays as it is. A state without dimensions is
// one value, which all parts must have: throws kUnaccounted if they differ, unless only weights are wanted.
struct WholeParameters {
  std::unique_ptr<PieceStore> store;
  NameSet<std::string> made_whole;
};
WholeParameters whole_parameters(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup,
                                 bool weights_only);

}  // namespace mckpt::impl
