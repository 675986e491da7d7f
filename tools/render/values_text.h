// Values of a tensor as text, one matrix after the other, or as nested JSON arrays.
#pragma once

namespace mckpt::impl {

class JsonWriter;
class Output;
class ValueRows;

void write_values(Output& out, ValueRows& values);
// A dimension that a slice has indexed is not an array.
void write_values(JsonWriter& json, ValueRows& values);

}  // namespace mckpt::impl
