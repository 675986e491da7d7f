// A map file: rows over the built-in tables, as JSON that the user writes (docs/adding_a_model.md). It adds
// or replaces rows of a family's table without a new build:
//
//   {"rows": [{"megatron": "decoder.layers.{L}.mlp.gate.weight", "partition_dim": 0,
//              "hugging_face": [["model.layers.{L}.mlp.gate.weight", "ffn hidden"]]}],
//    "unread": [{"name": "model.rotary.inv_freq", "reason": "computed from the config"}]}
#pragma once

#include <string>

namespace mckpt::impl {

struct MapFile;
struct OpenOptions;

// Reads the JSON; whether the rows make sense is checked when they are joined with a family. Throws kBadJson,
// and kBadMap with the key.
MapFile parse_map_file(std::string_view text);
// The text of a map file, which is known to parse. Throws kNotFound, kBadJson, kBadMap with the file.
std::string read_map_text(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
