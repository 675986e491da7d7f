// --map-file: rows over the built-in tables, as JSON (docs/adding_a_model.md).
#pragma once

#include <string>

#include "mappings/map_rows.h"

namespace mckpt {

// Throws kNotFound, kBadJson, kBadMap with the file.
MapFile read_map_file(const std::string& path);
MapFile parse_map_file(std::string_view text);

}  // namespace mckpt
