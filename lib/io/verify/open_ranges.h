// Ranges to which a layer clips its input and output. transformers (Gemma4's clippable linear layers) makes
// them from minus infinity to infinity, and they stay so until somebody sets them:
//
//   q_proj.input_min   F32 []   -inf      q_proj.output_min   F32 []   -inf
//   q_proj.input_max   F32 []    inf      q_proj.output_max   F32 []    inf
//
// These infinities clip nothing, and spread into no computation.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
class TensorReader;
struct NonFinite;

// Whether the tensor is an end of such a range, and all its values are the infinity of that end. `values`:
// what was seen in all of them. Throws what TensorReader::read() throws.
bool is_open_range(const Store& store, i64 tensor, const NonFinite& values, TensorReader& reader);

}  // namespace mckpt::impl
