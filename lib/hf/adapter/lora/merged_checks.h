// Checks of a base with an adapter in it, beside the fit of each pair to its tensor.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class BaseTensors;
class Store;
class Vocabulary;
struct AdaptedModel;

// Throws kUnsupportedTensor for a changed tensor of a type that is not computed with, kSourceShape if not all
// tensors of the vocabulary have one number of rows.
void check_merged(const BaseTensors& base, const Store& adapter, const AdaptedModel& model,
                  const Vocabulary& vocabulary);

}  // namespace mckpt::impl
