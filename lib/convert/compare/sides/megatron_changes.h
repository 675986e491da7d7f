// The changes that a conversion between two checkpoints of Megatron makes on purpose.
#pragma once

#include <vector>

#include "convert/compare/sides/changes.h"

namespace mckpt::impl {

class CheckpointModel;
struct CompareOptions;

// In a conversion that keeps the names: the states that it leaves out.
Changes changes_under_own_names(const Store& source, const CompareOptions& options);
// The same between checkpoints that may have the model's own names: weights are cast, and no state of the
// optimizer. Refers to both stores.
Changes changes_under_own_names(const Store& tested, const Store& source, const CompareOptions& options);
// By tensor of a source with the model's own names, whether a type that was asked for is for it. Empty: for
// all, as in stores whose model is not found.
std::vector<bool> types_asked_of(const Store& tested, const Store& source, const CompareOptions& options);

// The changes that follow from the format of the result, beside the names.
struct Into {
  // Megatron-FSDP v2, and the source is not: weights are fp32, and only the state dict has a place
  bool v2 = false;
  bool ranks_of_weights = false;  // files of ranks, which have weights only
  bool casts = false;             // into files of ranks and torch_dist weights are cast
};

// The changes that a conversion makes under the names of fsdp_dtensor. Refers to both checkpoints.
Changes changes_under_keys(const CheckpointModel& to, const CheckpointModel& from, const Into& into,
                           const CompareOptions& options);

}  // namespace mckpt::impl
