// The planning of a resharding for a model that no table knows: only grids that divide whole tensors among
// data-parallel ranks are possible, and what is trained follows from the optimizer's own lists.
#pragma once

#include <optional>

#include "hf/folder/listed_parameters.h"

namespace mckpt::impl {

class Notes;
class ReshardSource;
struct FsdpRun;
struct ReshardOptions;

// Sets the engine of the run, and adds notes about names and units. Returns the optimizer's lists of
// parameters for a run of Megatron-FSDP v2, nothing for any other. Throws kUnknownPartition for a grid or a
// source of which a table would be needed; what ListedParameters throws; kNoSuchTensor for a module that does
// not exist.
std::optional<ListedParameters> set_up_unknown(const ReshardSource& source, const ReshardOptions& options,
                                               FsdpRun& run, Notes& notes);

}  // namespace mckpt::impl
