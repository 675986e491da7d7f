// Values of a tensor as text, one matrix after the other, or as nested JSON arrays.
#pragma once

#include "io/file/json_writer.h"
#include "io/values/value_rows.h"
#include "tools/render/output.h"

namespace mckpt::impl {

void write_values(Output& out, ValueRows& values);
// A dimension that a slice has indexed is not an array.
void write_values(JsonWriter& json, ValueRows& values);

}  // namespace mckpt::impl
