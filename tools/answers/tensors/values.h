// Values of a tensor as text, one matrix after the other, or as nested JSON arrays: the answers of `mckpt
// cat`.
//
//   slice [0:2, :2]    0.5  1        [[0.5, 1], [-2, 0.25]]
//                       -2  0.25
//   slice [0, :2]      0.5  1        [0.5, 1]: a dimension with a single index is left out
#pragma once

namespace mckpt::impl {

class JsonWriter;
class Output;
class ValueRows;

void write_values(Output& out, ValueRows& values);
// A dimension with a single index in the slice is not an array.
void write_values(JsonWriter& json, ValueRows& values);

}  // namespace mckpt::impl
