// All fields of all kinds as data: for messages, which name fields, and for what is made of them outside of
// C++.
//
//   {"kinds": [{"name": "fsdp-to-hf", "word": "hf", "fields": [{"name": "dtype", "type": "text", "words": [...]}]}]}
//
// scripts/fields writes Python's types (tools/python/mckpt/_fields.py) and the tables of docs/settings.md of
// it.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

// The flag that a field has, without its hyphens: "scheme" for quantize; "" for a name that no field has.
std::string flag_of_field(std::string_view name);

// Text of JSON: the structs of conversions, and of the functions of the interface.
std::string field_list_json();

}  // namespace mckpt::impl
