// Whether the files of a Megatron run's ranks are of one save, by what all ranks save alike beside their
// tensors:
//
//   mp_rank_01/iteration, checkpoint_version, opt_param_scheduler, num_floating_point_operations_so_far
//   mp_rank_01/args                              each field, except those that tell the ranks apart
//   mp_rank_01/optimizer.optimizer.param_groups  lr, weight_decay, betas, step ... of each group
//
// Random states differ in a sound save and are not compared. The tensors are compared in
// convert/dialects/ranks/copies.h.
#pragma once

#include <vector>

#include "io/store/finding.h"

namespace mckpt::impl {

class Store;

// A finding of kMixedSaves for each file that says something else than the first one, with the names of what
// differs and both values. Texts of the args, such as paths, may be a machine's: a warning. pre: a store of
// files of Megatron's ranks. Objects that cannot be read are not compared.
std::vector<Finding> mixed_saves(const Store& store);

}  // namespace mckpt::impl
