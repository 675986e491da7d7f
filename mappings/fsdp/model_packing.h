// A whole model as Megatron-FSDP packs it, with what a person wants to know of every buffer. Nothing is read
// and nothing is refused: a buffer whose shards cut rows is described like any other.
//
//   group  unit               of       items   bucket  holes  padding
//   0      -                  dense    24,960  24,960      0        0      embedding, final norm, output layer
//   1      decoder.layers.0   dense     3,120   3,328      0      208
//   2      decoder.layers.0   experts   6,144   6,144      0        0
//   3      decoder.layers.1   dense     3,120   3,328      0      208      like group 1
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/row_cuts.h"
#include "mappings/fsdp/groups.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

struct Grid;
struct FsdpSetup;

// The facts of one group, beside its bucket and its buffer.
struct GroupFacts {
  std::string unit;            // the module of its FSDP unit, "decoder.layers.0"; "" outside units
  bool stack = false;          // the unit is a HybridStack
  bool experts_alone = false;  // the unit is experts, of a layer that is none
  UnitClass unit_class = UnitClass::kNone;  // of the unit, or of the first layer in its stack
  bool expert = false, trainable = true;
  DType dtype = DType::kBF16;  // at run time
  i64 ranks = 1;               // that share the buffer
  i64 items = 0;               // of the parameters
  i64 holes = 0, padding = 0;  // items between the parameters, and after the last one
  i64 chunks_end = 0;          // where the last parameter of at least a chunk ends
  // The first group of another unit that has the same parameters at the same places; -1: there is none
  // before.
  i64 like = -1;
  std::vector<RowCut> cuts{};  // empty where nothing is sharded
};

// groups[i] has facts[i].
struct ModelPacking {
  std::vector<FsdpGroup> groups;
  std::vector<GroupFacts> facts;
};

// pre: the parameters belong to one cell of the grid. Throws kBadLayout for a grid with pipeline stages,
// and what packed_groups() throws.
ModelPacking packing_of(const std::vector<ModelParameter>& parameters, const Grid& grid,
                        const FsdpSetup& setup);

// The place that the packing gave to a member of the group, in words: "smaller than the csf: in a gap".
std::string_view place_text(const FsdpGroup& group, const GroupFacts& facts, i64 member);

}  // namespace mckpt::impl
