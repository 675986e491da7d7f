// ShardMap: which rank (or file) holds which items of every tensor of a checkpoint, folded so that it can be
// drawn:
//
//   block   layers 3..60        layers with the same tensors
//     kind  mlp.experts.*.up_proj.weight      a variant for each way in which layers store it: here one
//     row   [2048, 7168]  members 0..255      tensors that differ in one number, as one
//       box   column 4   members [32, 64)   rows [0, 2048)                    what ranks 8 and 9 hold of it
//       box   column 5   members [64, 96)   rows [0, 1024)
//       fault hole       member 64          rows [1024, 2048)
//
// A column is a rank, or a file where the format does not know ranks, or several neighbours of them. The
// sizes are bounded: the map of a model of a trillion parameters on thousands of ranks has some ten thousand
// boxes. No data are read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/box_cover.h"
#include "core/items/dtype.h"
#include "page/data/tensor_place.h"

namespace mckpt::impl {

class Store;

// Whole numbers from first to last, in ascending order.
struct NumberRange {
  i64 first = 0, last = 0;
  bool operator==(const NumberRange&) const = default;
};
std::vector<NumberRange> number_ranges(std::span<const i64> ascending);

// The part of a row that one column holds: a box of the tensor, for `count` members from `member` on
// (positions in ShardRow::members; 0 and 1 for a row of one tensor).
struct ShardBox {
  i64 column = 0, member = 0, count = 1;
  std::vector<i64> offsets{}, sizes{};  // a size may be 0: the rank has a chunk without items
  bool replica = false;                 // the same box as another one
  bool lost = false;                    // its file is not there
};

// Something wrong with the boxes of a member.
struct ShardFault {
  enum class Kind : u8 {
    kHole,     // no chunk has these items
    kOverlap,  // columns `first` and `second` both have them
    kOutside,  // a chunk reaches out of the tensor
    kLost,     // the file of column `first` is not there
    kAbsent,   // there is no tensor of this number, but other layers have one
    kUnknown   // the chunks are so many that the check was stopped
  };
  Kind kind = Kind::kHole;
  i64 member = 0;  // position in ShardRow::members; for kAbsent the number itself
  i64 first = -1, second = -1;
  std::vector<i64> offsets{}, sizes{};
};
std::string_view map_fault_name(ShardFault::Kind kind);  // "hole"

struct ShardRow {
  std::string before, after;  // of the name, as in TensorPlace
  bool stack = false;         // several tensors, which differ in the number between `before` and `after`
  // Their numbers, ascending; one where a name has a number and no others are like it; else none
  std::vector<i64> members{};
  DType dtype = DType::kU8;
  std::vector<i64> dims{};  // of each tensor
  i64 bytes = 0;            // of all
  std::vector<ShardBox> boxes{};
  std::vector<ShardFault> faults{};
  bool drawn = true;  // false: the boxes were left out, because there are too many
  ModulePart part = ModulePart::kOther;

  i64 tensors() const { return members.empty() ? 1 : std::ssize(members); }
};

// Layers that store a kind of tensor alike, chunk by chunk.
struct ShardVariant {
  i64 row = 0;                // of ShardMap::rows
  std::vector<i64> layers{};  // ascending; none where there is no section
};

struct ShardBlock {
  std::string section{};      // "" for what is in no layer
  std::vector<i64> layers{};  // ascending; none where there is no section
  std::vector<std::vector<ShardVariant>> kinds{};
  bool faulty = false;
  std::string title{};  // of what is in no layer: "outside layers", "optimizer, outside layers"

  i64 count() const { return section.empty() ? 1 : std::ssize(layers); }
};

struct ShardColumn {
  std::string label{};  // "rank 3", "ranks 8..15", or the name of a file
  i64 bytes = 0;        // of the tensors shown, with copies
  bool lost = false;    // its file is not there
};

struct ShardMap {
  bool by_rank = false;  // columns are ranks, else files
  i64 holders = 0;       // ranks or files
  i64 per_column = 1;
  std::vector<ShardColumn> columns{};
  std::vector<ShardRow> rows{};  // each once, however many layers have it
  std::vector<ShardBlock> blocks{};
  i64 tensors = 0, bytes = 0;  // of all chosen tensors
  i64 faulty_tensors = 0;
  i64 tensors_left_out = 0;  // that no row has: too many; none of them is faulty if it can be helped
  i64 rows_not_drawn = 0;
};

struct ShardMapLimits {
  i64 columns = 256, rows = 3000, boxes = 50'000;
};

// The map of these tensors, which are in natural order. Throws kSizeOverflow.
ShardMap shard_map(const Store& store, std::span<const i64> tensors, const ShardMapLimits& limits = {});

}  // namespace mckpt::impl
