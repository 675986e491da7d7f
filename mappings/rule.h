// Rule: the pure function behind every split. It says which items of the Hugging Face tensors one
// tensor-parallel cell owns, in that cell's local order. Import gathers along its runs, export scatters along
// them, verify compares along them: there is no second, inverse piece of code.
//
// A rule works on whole logical tensors of one model replica. FSDP comes after it and cuts the local order;
// expert parallelism comes before it and decides which experts a rank asks for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "mappings/config.h"

namespace mckpt {

// A run of this slot has no source: its items are padding, filled with zeros.
inline constexpr i32 kPaddingSlot = -1;

// The shape of a whole (logical) tensor, and of what one tensor-parallel cell holds of it. They are different
// types so that nothing is multiplied by the parallel size twice; global_shape() is the only way from one to
// the other.
struct GlobalShape {
  Shape shape;
};
struct LocalShape {
  Shape shape;
};

// Which of how many tensor-parallel cells; for experts, expert-tensor-parallel ones.
struct Part {
  i64 index = 0;
  i64 count = 1;
};

struct RuleInput {
  const ModelConfig& model;
  const TowerConfig& tower;              // of the two in `model`, the one that the parameter belongs to
  std::span<const GlobalShape> sources;  // the Hugging Face tensors, in the order of the row's roles
  Part part;
  i64 expert = 0;        // global number; rules that take one expert out of a fused tensor use it
  i64 padded_vocab = 0;  // rows of the vocabulary with padding; 0: as many as there are
};

struct Holding {
  LocalShape shape;
  int partition_dim = -1;     // the dimension that is split over the cells; -1: every cell holds all of it
  std::vector<ItemRun> runs;  // in local order; slot = index of the source, or kPaddingSlot
  float addend = 0;           // added to every value on the way to Megatron, taken off on the way back
};

// The parts of a fused parameter, and how it is split into keys on disk.
enum class KeySplit : u8 { kNone, kSwiglu, kGdnInProj, kGdnConv, kMambaInProj, kMambaConv, kMlaDown };

struct Rule {
  std::string_view name;                    // as `mckpt mappings` and map files write it
  std::span<const std::string_view> roles;  // of its sources, in the order of a row's names
  std::string_view summary;
  Holding (*hold)(const RuleInput&);  // called through hold() below
  // What it fuses. Where the cells split the rows, each has its share of every part, so that their rows one
  // after the other depend on how many cells there are.
  KeySplit parts = KeySplit::kNone;
};

std::span<const Rule> all_rules();
const Rule& rule_named(std::string_view name);  // throws kUsage with the nearest name

// What a cell holds. Throws kSourceShape when a source has not the shape that the config promises, kBadGrid
// when a number does not divide by the parallel size, kModelNumbers when the numbers of the config contradict
// each other; all name the number.
Holding hold(const Rule& rule, const RuleInput& in);

GlobalShape global_shape(const Holding& holding, i64 parts);

// A part of a fused parameter that fsdp_dtensor or torch_dist stores under a key of its own: rows of the
// local tensor. The parts of all cells, one after the other, make a tensor that no parallel size shows in.
struct Piece {
  std::string_view name;  // "_w", ".query"; for kMlaDown the module, "linear_q_down_proj"
  i64 first_row = 0, rows = 0;
};

// In the order of the local rows, which they tile. pre: split is not kNone. Throws kBadSplit when the
// parameter is not made of such parts, kBadGrid when a part does not divide. `global` is the whole
// parameter's shape: the halves are those of the parameter, also for optimizer states that are plain local
// tensors.
std::vector<Piece> pieces_of(KeySplit split, const ModelConfig& model, const GlobalShape& global, Part part);

// The items of a piece in the local order; `row_items` of the parameter.
ItemRange items_of(const Piece& piece, i64 row_items);

// "a.in_proj.weight" and ".query" make "a.in_proj.weight.query"; kMlaDown renames the module instead.
std::string piece_key(KeySplit split, std::string_view key, const Piece& piece);

}  // namespace mckpt
