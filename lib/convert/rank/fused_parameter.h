// The parts of one fused parameter of a run under Megatron-FSDP, and the items that its ranks have of it: the
// FusedCut of linear_fc1 (W and V), of the projections of gated delta nets, and of others that are saved in
// pieces.
#pragma once

#include <string>
#include <vector>

#include "core/base/notes.h"
#include "core/fsdp/fused_cut.h"
#include "core/items/shape.h"

namespace mckpt::impl {

struct ShareRun;
struct TensorChoice;

struct FusedParameter {
  std::string name{};  // with the numbers of the whole model
  Shape shape{};       // on one tensor-parallel rank
  bool expert = false;
  FusedCut cut{};  // by the ranks of its first tensor-parallel rank, those with copies left out
  Notes notes{};   // of opening the model
};

// `choice` chooses one parameter by its name, or by its key before it is taken apart. Throws kNoSuchTensor
// for none, kUsage for several or for one that is not fused; what opening the model and FsdpLayout throw.
FusedParameter fused_parameter(const std::string& path, const ShareRun& run, const TensorChoice& choice);

}  // namespace mckpt::impl
