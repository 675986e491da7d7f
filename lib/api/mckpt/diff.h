// mckpt::diff(): what is different in two checkpoints, row by row: tensors that only one of them has, other
// types and shapes, other values.
//
//   mckpt::Diff d = mckpt::diff("ckpt/iter_0000100", "Qwen3-0.6B");
//   for (const mckpt::DiffRow& row : d.rows) ...    values  model.norm.weight  [3]  0.5  0.25  17 items
//
// The two may have other formats and grids: where their names differ, one of them is compared with what
// converting the other one would write, as compare() does it. With DiffOptions::of_rank one of them is a dump
// of a live rank, compared with what that rank should have of the model. Values are compared bit by bit; of
// two types in one that has all values of both, so that the order of the two does not matter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mckpt/verify.h"

namespace mckpt {

// One tensor, object or file that is not the same. `a` and `b` are texts: "" is what a side does not have.
struct DiffRow {
  // only_a, only_b  a tensor that one side has; its type and shape
  // shape, dtype    types or shapes differ, and the values were not compared
  // attribute       of a live rank: an attribute of a parameter, or the place of its part, is another one
  // values          items differ: the first one is at `at`; of a live rank only the digests say so
  // cast            the types differ, or one side has codes and scales; values were compared all the same
  // object          a value of something that is not a tensor, at `at`
  // file            a file beside the tensors, such as config.json, differs: at `at`, if it is JSON
  std::string kind{};
  std::string name{};
  std::string at{};          // "[3, 2]" in a tensor, ".lr" in an object
  std::string a{}, b{};      // "bfloat16 [2, 3]", or the values at `at`
  std::int64_t items = -1;   // how many items differ; -1: not counted
  std::int64_t beyond = -1;  // of these, items that are further apart than `within` allows
  // For two tensors of floats: the largest difference of two finite items, the length of a - b by the length
  // of b, the cosine of the angle between them, and the most steps from one float of the type to the next
  // between two items.
  std::optional<double> largest{}, relative_l2{}, cosine{};
  std::int64_t most_ulps = 0;
  std::int64_t not_finite =
      0;  // items with NaN or infinity on one side: then there are no relative_l2 and cosine
  // Where the values are instead: "the same rows in another order"; "": nothing was found
  std::string hint{};
  // The file of `a` that has the first difference, if one has it; of `b`, with its path, if its tensors
  // are compared
  std::string file{};
};

struct Diff {
  bool equal = false;           // everything that is asked for was compared, and there is no row
  bool alike = false;           // everything was compared, and no row has an item beyond its tolerance
  std::string compared{};       // what was compared with what, in a line
  std::int64_t tensors = 0;     // how many were compared
  std::vector<DiffRow> rows{};  // tensors in order of kinds, the most different first, then objects and files
  std::vector<Check> checks{};  // as compare() makes them; a note says what was not compared
  // Damage, and oddities, as warnings. A problem here makes the two unequal: something could not be compared.
  std::vector<Finding> findings{};
  // Checkpoints beside A and B, hidden ones too, that were not looked at: paths, with the reason
  std::vector<std::string> unread{};
  std::vector<std::string> unread_paths{};  // the paths of `unread`, in the same order, without the reasons
};

// Reads all data of both sides once, and twice where they differ. Throws Error if one of the two cannot be
// opened, or if a sharded checkpoint lacks parameters of the model that it is compared with.
MCKPT_API Diff diff(const std::string& a, const std::string& b, const DiffOptions& options = {},
                    Observer* observer = nullptr);

}  // namespace mckpt
