// Losses in a DCP folder whose boxes and bytes are all in order: tensors that should come in pairs, layers
// and experts that should count without gaps, pipeline stages that overwrote each other. torch and Megatron
// check none of it on loading.
//
//   linear_fc1.weight_w  needs  linear_fc1.weight_v  of the same shape     (gate and up half of one tensor)
//   exp_avg              needs  exp_avg_sq, and the shape of its parameter (the two moments of Adam)
//   layers.0, .1, .3     lack   layers.2                                   (counts.h)
#pragma once

#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class Store;
struct Finding;
struct RunSizes;

// The part of a checkpoint that is checked. An optimizer that lost its states does no harm to a conversion of
// the weights.
enum class CheckedPart : u8 { kAll, kModel };

// Looks at names and shapes, and at the small objects that list the trained parameters. Reads no tensor.
std::vector<Finding> check_names(const Store& store, DcpDialect dialect, const RunSizes& facts,
                                 CheckedPart part = CheckedPart::kAll);

}  // namespace mckpt::impl
