// A map file: rows over the built-in tables, as JSON (docs/adding_a_model.md).
#pragma once

#include <string>

namespace mckpt::impl {

struct MapFile;

// Throws kBadJson, kBadMap.
MapFile parse_map_file(std::string_view text);
// The text of a map file, which parses. Throws kNotFound, kBadJson, kBadMap with the file.
std::string read_map_text(const std::string& path);

}  // namespace mckpt::impl
