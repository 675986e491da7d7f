// Values of a tensor as text, one matrix after the other, or as nested JSON arrays: the answers of `mckpt
// cat`.
#pragma once

#include "io/file/json_writer.h"
#include "io/values/value_rows.h"
#include "tools/render/output.h"

namespace mckpt::impl {

void write_values(Output& out, ValueRows& values);
// A dimension with a single index in the slice is not an array.
void write_values(JsonWriter& json, ValueRows& values);

}  // namespace mckpt::impl
