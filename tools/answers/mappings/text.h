// The tables of the model families, as text or JSON: the answers of `mckpt mappings list` and `show`.
//
//   {"megatron": "decoder.layers.{L}.mlp.linear_fc2.weight", "rule": "row",
//    "hugging_face": ["model.layers.{L}.mlp.down_proj.weight"], "shapes": ["hidden ffn"], "layer": "dense", ...}
#pragma once

#include <string_view>

namespace mckpt::impl {

class JsonWriter;
class ModelMap;
class Output;
struct Family;

void write_families(Output& out);
void write_family(Output& out, const Family& family);
// The sources of every Megatron parameter of a model: a line for parameters that differ in numbers alone, or
// an array of objects.
//
//   decoder.layers.{0-1}.mlp.linear_fc1.weight  gated_mlp  model.layers.{0-1}.mlp.gate_proj.weight
//                                                          model.layers.{0-1}.mlp.up_proj.weight
void write_pairs(Output& out, const ModelMap& map);
void write_pairs(JsonWriter& json, const ModelMap& map);
// One tensor that no parameter is made of, as a JSON object. `copy_of`: "" if it is not a copy.
void write_unread(JsonWriter& json, std::string_view name, std::string_view copy_of, std::string_view reason);

}  // namespace mckpt::impl
