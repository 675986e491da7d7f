// The tables of the model families, as text or JSON.
#pragma once

#include <string_view>

namespace mckpt::impl {

class JsonWriter;
class Output;
struct Family;

void write_families(Output& out);
void write_family(Output& out, const Family& family);
// A tensor that no parameter is made of, as one JSON object. `copy_of`: "" where it is not a copy.
void write_unread(JsonWriter& json, std::string_view name, std::string_view copy_of, std::string_view reason);

}  // namespace mckpt::impl
