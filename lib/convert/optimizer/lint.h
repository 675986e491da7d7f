// The lint of an optimizer: what is possible in a save and nearly always a mistake of the run. Each finding
// is a warning with the names of the parameters and how many there are.
//
//   decay      a norm or a bias decays, or a matrix does not, unlike the others; wd_mult and weight_decay disagree
//   experts    an expert in a group that is not marked as of experts, or another parameter in one that is
//   alone      a learning rate, betas or a count of steps that one parameter or group has and its like have not
//   states     a parameter of a group without states, or with fewer than the others; states of no parameter
//
// Settings that a run may have on purpose are not remarked: a group for each module, a learning rate of the
// embedding and the output layer, an optimizer in which everything decays.
#pragma once

#include <vector>

#include "convert/optimizer/content.h"
#include "io/store/finding.h"

namespace mckpt::impl {

// In the order above.
std::vector<Finding> lint(const OptimizerContent& content);

}  // namespace mckpt::impl
