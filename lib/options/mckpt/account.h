// The account of a conversion: numbers of tensors, by what is made of them.
#pragma once

#include <cstdint>

namespace mckpt {

// The account of a conversion's tensors, counted from the planned moves. tensors_out = copied + fused + split
// + dequantized + quantized + invented + those that repeat another tensor of the result. `padded` and
// `changed` count some of these again.
struct Account {
  std::int64_t tensors_in = 0, tensors_out = 0;
  std::int64_t copied = 0;            // made of one tensor, which is used for no other
  std::int64_t fused = 0, split = 0;  // made of several; made of one that is used for others as well
  std::int64_t tied = 0;      // tensors that are a copy of another one, in the source or in the result
  std::int64_t padded = 0;    // have zeros that the source does not have
  std::int64_t unpadded = 0;  // tensors of the source whose padding is dropped
  std::int64_t changed = 0;   // have another type, or other values, than the source
  // Tensors and objects of the source that are left out on purpose
  std::int64_t dropped = 0, dropped_objects = 0;
  std::int64_t invented = 0;     // made of nothing, because a rule gives their values
  std::int64_t dequantized = 0;  // values of one tensor, which the source has as codes and scales
  std::int64_t quantized = 0;    // codes or scales of one tensor
};

}  // namespace mckpt
