// Facts from an optimizer's lists about the parameters of a model without a table:
//
//   optimizer.param_groups.0.params = ["emb.weight"]       emb.weight      is trained
//   model.head.weight    has the bytes of emb.weight       head.weight     is a second name of it (tied weights)
//   model.frozen.weight  has a type of trained parameters  frozen.weight   is frozen
//   model.steps          has another type                  steps           is a buffer
//
// Megatron-FSDP v2 packs each kind in another way. Without lists every parameter counts as trained.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct ModelParameter;

// The answer for one store. A value.
class ListedParameters {
 public:
  // pre: the store has the names of fsdp_dtensor. `trained`: names that are in the optimizer's lists, or have
  // options of a group. Reads the tensors that may be the same. Throws kUnknownAssets for a part of a fused
  // parameter, which v2 does not have.
  ListedParameters(const Store& store, const NameSet<std::string>& trained, int threads);

  // Marks the parameters. Thread-safe.
  void apply(std::vector<ModelParameter>& parameters) const;

 private:
  NameSet<std::string> frozen_, buffers_;
  NameMap<std::string, std::string> first_name_;  // of tied parameters
};

}  // namespace mckpt::impl
