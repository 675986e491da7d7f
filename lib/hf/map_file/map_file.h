// A map file: rows over the built-in tables, or a family of its own, as JSON that the user writes
// (docs/adding_a_model.md). It adds, replaces or removes rows of a family without a new build:
//
//   {"base": "llama",
//    "config": {"attention_bias": false, "head_dim": {"key": "kv_channels"}},
//    "rows": [{"megatron": "decoder.layers.{L}.mlp.gate.weight", "partition_dim": 0,
//              "hugging_face": [["model.layers.{L}.mlp.gate.weight", "ffn hidden"]]}],
//    "remove": ["decoder.layers.{L}.self_attention.q_layernorm.weight"],
//    "unread": [{"name": "model.rotary.inv_freq", "reason": "computed from the config"}]}
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

class JsonValue;
struct MapFile;
struct OpenOptions;

// Reads the JSON; whether the rows make sense is checked when they are joined with a family. Throws kBadJson,
// and kBadMap with the key. A draft is read too: refuse_draft() refuses it.
MapFile parse_map_file(std::string_view text);
// Throws kBadMap with what a person has still to decide in a draft, a line for each row.
void refuse_draft(const MapFile& file);
// The text of a map file, which is known to parse. Throws kNotFound, kBadJson, kBadMap with the file.
std::string read_map_text(const std::string& path, const OpenOptions& opening);
// The JSON of a map, made for people who edit it: a member on each line, a question on a line of its own.
std::string map_file_text(const MapFile& file);

// config.json as the family's reader is to see it. pre: `config` is an object. Throws kBadMap for an entry
// that is not in config.json.
JsonValue with_entries(const JsonValue& config, const MapFile& file);

}  // namespace mckpt::impl
