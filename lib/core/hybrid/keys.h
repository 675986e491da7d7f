// The names of a hybrid model's layers in a checkpoint.
//
//   pattern [*-]M               item 0 = physical layers 0 and 1, item 1 = physical layer 2
//   in memory                   decoder.layers.0.layers.1.mlp.linear_fc1.weight   module positions
//   stored                      decoder.layers.0.mlp.linear_fc1.weight            logical index
//   stored, brackets removed    decoder.layers.1.mlp.linear_fc1.weight            physical index
//
// The members of a group share one index, so two members of one family would own each other's keys.
#pragma once

#include "core/hybrid/pattern.h"

namespace mckpt {

// One physical layer of a decoder.
struct LayerPlace {
  const LayerKindInfo* kind;
  i64 physical_index;
  i64 logical_index;
  i64 segment;
  i64 position;  // of its item among the items of the segment: its module index where a segment is a stage
  i64 member;    // in its group; -1 outside one

  i64 layer_number() const { return physical_index + 1; }  // what Megatron calls layer_number
};

// Those of the main part, in physical order.
std::vector<LayerPlace> layer_places(const LayerPattern& pattern);
// Those of one segment or pipeline stage, of which these are all items. pre: `text` is what the items were
// read from.
std::vector<LayerPlace> stage_places(std::string_view text, std::span<const PatternItem> items, i64 segment);

std::string local_layer_prefix(const LayerPlace& place);  // "decoder.layers.0.layers.1."
std::string stored_layer_prefix(i64 logical_index);       // "decoder.layers.0."
// The depth may be given as text, for a range of depths.
std::string mtp_layer_prefix(std::string_view depth, i64 layer);  // "mtp.layers.0.mtp_model_layer.layers.1."
std::string_view final_norm_prefix(bool pattern_has_groups);  // as stored; in memory it is always final_norm

// A group of whose members at least two belong to one family.
struct GroupHazard {
  i64 logical_index;
  i64 first_member, second_member;
  // true: they own a parameter of the same name and the checkpoint cannot be saved right. false: no name is
  // known to be owned by both, but a key no longer tells which member it belongs to.
  bool same_keys;
};
std::vector<GroupHazard> group_hazards(const LayerPattern& pattern);

}  // namespace mckpt
