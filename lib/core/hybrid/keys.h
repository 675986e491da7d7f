// The names of a hybrid model's layers in a checkpoint.
//
//   pattern [*-]M               item 0 = physical layers 0 and 1, item 1 = physical layer 2
//   in memory                   decoder.layers.0.layers.1.mlp.linear_fc1.weight   module positions
//   stored                      decoder.layers.0.mlp.linear_fc1.weight            logical index
//   stored, brackets removed    decoder.layers.1.mlp.linear_fc1.weight            physical index
//
// The members of a group share one index, so two members of one family would have the same keys.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct LayerKindInfo;
struct LayerPattern;
struct PatternItem;

// One physical layer of a decoder.
struct LayerPlace {
  const LayerKindInfo* kind;
  i64 physical_index;
  i64 logical_index;
  i64 segment;
  i64 position;  // index of its item in the segment: its module index if the segment is a stage
  i64 member;    // index in its group; -1 outside groups

  i64 layer_number() const { return physical_index + 1; }  // what Megatron calls layer_number
};

// The layers of the main part, in physical order.
std::vector<LayerPlace> layer_places(const LayerPattern& pattern);
// The layers of one segment or pipeline stage, given all its items. pre: the items were read from
// `text`.
std::vector<LayerPlace> stage_places(std::string_view text, std::span<const PatternItem> items, i64 segment);

std::string local_layer_prefix(const LayerPlace& place);  // "decoder.layers.0.layers.1."
std::string stored_layer_prefix(i64 logical_index);       // "decoder.layers.0."
// The depth may be given as text, for a range of depths.
std::string mtp_layer_prefix(std::string_view depth, i64 layer);  // "mtp.layers.0.mtp_model_layer.layers.1."
std::string_view final_norm_prefix(bool pattern_has_groups);  // as stored; in memory it is always final_norm

// A group with at least two members of one family.
struct GroupHazard {
  i64 logical_index;
  i64 first_member, second_member;
  // true: both have a parameter of one name, so the checkpoint cannot be saved correctly. false: no common
  // name is known, but a key does not say which member it belongs to.
  bool same_keys;
};
std::vector<GroupHazard> group_hazards(const LayerPattern& pattern);
// Throws kBadPattern for the first group with `same_keys`: torch_dist cannot store it.
void refuse_same_keys(const LayerPattern& pattern);

}  // namespace mckpt::impl
