// The tensors of a rank, as a table or as JSON: the answer of `mckpt ls --as`. The shape is the whole
// tensor's when boxes are shown (as saved), and the rank's own tensor's at run time.
//
//   {"name": "model.module.decoder.layers.0.self_attention.linear_qkv.weight", "dtype": "bfloat16",
//    "shape": [64, 16], "bytes": 2048, "file": null, "offset": null,
//    "chunks": [{"rank": 3, "offsets": [44, 0], "sizes": [20, 16], "file": null, "offset": null, "bytes": 640}]}
//
// At run time the attributes that Megatron sets on the parameter follow, in text those without their
// defaults.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonWriter;
class Output;
struct HeldTensor;
struct ParameterMarks;

// `digests` and `marks`: one for each tensor, or none.
struct HeldList {
  std::span<const HeldTensor> held;
  std::span<const std::string> digests;
  std::span<const ParameterMarks> marks;
  bool boxes;  // with the box that the rank holds
};

void write_held(Output& out, const HeldList& list);
// The object of tensor `i`.
void write_held(JsonWriter& json, const HeldList& list, std::size_t i, i64 rank);

}  // namespace mckpt::impl
