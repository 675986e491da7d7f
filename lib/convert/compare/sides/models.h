// Whether two checkpoints of Megatron are of one model.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
struct CheckpointOptions;

// How the two sides are compared that are checkpoints of one model, or not.
enum class Models : u8 { kOne, kTwo, kTwoByOwnNames };
// `assets`: either side's; "": neither has any.
Models models_of(const Store& tested, const Store& source, const std::string& assets,
                 const CheckpointOptions& opening);

}  // namespace mckpt::impl
