// The tensors of a rank, as a table or as JSON: the answer of `mckpt ls --as`. The shape is the whole
// tensor's when boxes are shown (as saved), and the rank's own tensor's at run time.
//
//   {"name": "model.module.decoder.layers.0.self_attention.linear_qkv.weight", "dtype": "bfloat16",
//    "shape": [64, 16], "bytes": 2048, "file": null, "offset": null,
//    "chunks": [{"rank": 3, "offsets": [44, 0], "sizes": [20, 16], "file": null, "offset": null, "bytes": 640}]}
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonWriter;
class Output;
struct HeldTensor;

// `boxes`: with the box that the rank holds. `digests`: one for each, or none.
void write_held(Output& out, std::span<const HeldTensor> held, bool boxes,
                std::span<const std::string> digests);
// One object. `sha256`: null where it was not asked for.
void write_held(JsonWriter& json, const HeldTensor& held, i64 rank, const std::string* sha256);

}  // namespace mckpt::impl
