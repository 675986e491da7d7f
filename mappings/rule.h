// Rule: the pure function behind every split. It returns the items of the Hugging Face tensors that one
// tensor-parallel cell owns, as runs in that cell's local order. Import gathers along these runs, export
// scatters along them, verify compares along them: there is no inverse code.
//
// A rule works on whole logical tensors of one model replica. FSDP cuts the local order afterwards; expert
// parallelism decides before which experts a rank has.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "mappings/key_split.h"

namespace mckpt::impl {

struct ModelConfig;
struct TowerConfig;

// Runs of this slot have no source: their items are padding, filled with zeros.
inline constexpr i32 kPaddingSlot = -1;

// Runs of the slot copy_of(s) have the items of source s a second time: import copies them again, export
// demands that they still equal the items of source s, and moves between checkpoints take them for items of
// their own.
constexpr i32 copy_of(i32 slot) { return -2 - slot; }
constexpr bool is_copy(i32 slot) { return slot < kPaddingSlot; }
constexpr i32 copied_slot(i32 copy) { return -2 - copy; }  // pre: is_copy()

// The shape of a whole (logical) tensor, and the shape of one tensor-parallel cell's part of it. They are
// different types so that no size is multiplied by the parallel size twice; only global_shape() converts one
// to the other.
struct GlobalShape {
  Shape shape;
};
struct LocalShape {
  Shape shape;
};

// One of `count` tensor-parallel cells; for experts, of the expert-tensor-parallel cells.
struct Part {
  i64 index = 0;
  i64 count = 1;
};

// The facts that a rule may look at. A rule is a pure function of this: no files, no names, no order of
// calls. The references outlive the call.
struct RuleInput {
  const ModelConfig& model;
  const TowerConfig& tower;              // the sizes of the layer, or of the tower, that has the parameter
  std::span<const GlobalShape> sources;  // the Hugging Face tensors, in the order of the row's roles
  Part part;
  i64 expert = 0;        // global number; rules that take one expert out of a fused tensor use it
  i64 padded_vocab = 0;  // rows of the vocabulary with padding; 0: no padding
};

// The part of a parameter that one cell holds. The runs one after the other are the items of `shape` in
// row-major order:
//
//   gated_mlp, gate and up [4, 2], cell 1 of 2:   shape [4, 2], partition_dim 0, runs 0[4+4] 1[4+4]
struct Holding {
  LocalShape shape;
  int partition_dim = -1;     // the dimension that is split over the cells; -1: every cell holds all of it
  std::vector<ItemRun> runs;  // in local order; slot = index of the source, copy_of() it, or kPaddingSlot
  float addend = 0;           // added to every value on import, zeros of padding too; subtracted on export
  i64 copies =
      1;  // cells one after the other that have the same part, where the cells are more than the parts
};

// The part among those that differ: cells one after the other may have the same.
constexpr Part distinct_part(const Holding& holding, Part part) {
  return {part.index / holding.copies, part.count / holding.copies};
}

// One way to make a Megatron parameter from Hugging Face tensors.
struct Rule {
  std::string_view name;                    // as `mckpt mappings` and map files write it
  std::span<const std::string_view> roles;  // of its sources, in the order of a row's names
  std::string_view summary;
  Holding (*hold)(const RuleInput&);  // called through hold() below
  // The parts that it fuses. If the cells split the rows, each cell has its share of every part, so that the
  // order of rows over all cells depends on the number of cells.
  KeySplit parts = KeySplit::kNone;
  bool parts_of_sources = false;  // its one source may be several tensors, parts of a whole
};

std::span<const Rule> all_rules();
const Rule& rule_named(std::string_view name);  // throws kUsage with the nearest name

// Calls the rule and checks its answer. Throws kSourceShape if a source does not have the shape that the
// config promises, kBadGrid if a number does not divide by the parallel size, kModelNumbers if the numbers of
// the config contradict each other; each error names the number.
Holding hold(const Rule& rule, const RuleInput& in);

// The shape of the whole parameter, over `parts` cells. Throws kSizeOverflow. pre: `copies` divides `parts`.
GlobalShape global_shape(const Holding& holding, i64 parts);

// A part of a fused parameter that is stored under a key of its own: rows of the local tensor. The parts of
// all cells, one after the other, are a tensor that does not depend on the parallel size.
struct Piece {
  std::string_view name;  // "_w", ".query"; for kMlaDown the module, "linear_q_down_proj"
  i64 first_row = 0, rows = 0;
};

// The pieces in the order of the local rows, which they tile. pre: split is not kNone. Throws kBadSplit if
// the parameter does not consist of such parts, kBadGrid if a part does not divide. `global` is the shape of
// the whole parameter: halves are halves of it, also for optimizer states that are plain local tensors.
std::vector<Piece> pieces_of(KeySplit split, const ModelConfig& model, const GlobalShape& global, Part part);

// The items of a piece in the local order of a parameter with rows of `row_items` items.
ItemRange items_of(const Piece& piece, i64 row_items);

// "a.in_proj.weight" and ".query" make "a.in_proj.weight.query"; kMlaDown renames the module instead.
std::string piece_key(KeySplit split, std::string_view key, const Piece& piece);

}  // namespace mckpt::impl
