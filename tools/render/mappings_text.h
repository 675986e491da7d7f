// The tables of the model families, as text or JSON.
#pragma once

#include "mappings/registry.h"
#include "tools/render/answer_json.h"

namespace mckpt::impl {

void write_families(Output& out);
void write_family(Output& out, const Family& family);
// One tensor that no parameter is made of, as a JSON object. `copy_of`: "" if it is not a copy.
void write_unread(JsonWriter& json, std::string_view name, std::string_view copy_of, std::string_view reason);

}  // namespace mckpt::impl
