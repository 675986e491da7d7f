// Readers of OptimizerContent: one for each way in which programs write the groups of an optimizer.
//
//   an object for each option of a parameter      fsdp_dtensor
//   fields of numbered groups, and their lists    state dicts in DCP: FSDP2, torchtitan, Megatron-FSDP v2 and its hooks
//   a list of dicts, anywhere in a pickle         files of torch.save, alone or of ranks; DeepSpeed ZeRO
//   a list of dicts without parameters            torch_dist
//   options of a model's parameters               files of Megatron's ranks, opened with their model
#pragma once

#include "convert/optimizer/content.h"

namespace mckpt::impl {

class CheckpointModel;
class Store;

// By the names of the store alone. Reads objects and counts of steps; what cannot be read is left out,
// because the check of objects reports it. Empty where the store has no optimizer that is known.
OptimizerContent optimizer_content(const Store& store);
// By the model, whose names the parameters get.
OptimizerContent optimizer_content(const CheckpointModel& checkpoint);

}  // namespace mckpt::impl
