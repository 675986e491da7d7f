// mckpt::diff(): what is different in two checkpoints, row by row: tensors that only one of them has, other types
// and shapes, other values.
//
//   mckpt::Diff d = mckpt::diff("ckpt/iter_0000100", "Qwen3-0.6B");
//   for (const mckpt::DiffRow& row : d.rows) ...    values  model.norm.weight  [3]  0.5  0.25  17 items
//
// The two may have other formats and grids: where their names differ, one of them is compared with what
// converting the other one would write, as compare() does it. Values are compared bit by bit.
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
  // cast            the types differ; values were compared after the cast that a conversion makes
  // values          items differ: the first one is at `at`
  // object          a value of something that is not a tensor, at `at`
  // file            a file beside the tensors, such as config.json, differs
  std::string kind{};
  std::string name{};
  std::string at{};                 // "[3, 2]" in a tensor, ".lr" in an object
  std::string a{}, b{};             // "bfloat16 [2, 3]", or the values at `at`
  std::int64_t items = -1;          // how many items differ; -1: not counted
  std::optional<double> largest{};  // the largest difference of two finite floats, if one was counted
  std::string file{};               // of `a`, if one file has the first difference
};

struct Diff {
  bool equal = false;           // everything was compared, and there is no row
  std::string compared{};       // what was compared with what, in a line
  std::int64_t tensors = 0;     // how many were compared
  std::vector<DiffRow> rows{};  // tensors in order of kinds and names, then objects and files
  std::vector<Check> checks{};  // as compare() makes them; a note says what was not compared
  // Damage, and oddities, as warnings. A problem here makes the two unequal: something could not be compared.
  std::vector<Finding> findings{};
  std::vector<std::string> unread{};  // files and folders beside `a` that were not looked at
};

struct DiffOptions {
  SourceOptions opening{};                            // of both; its ranks are those of `b`
  std::optional<std::int64_t> path_tp{}, path_etp{};  // ranks that wrote `a`, if it does not say so
  int threads = 1;
};

// Reads all data of both sides once, and twice where they differ. Throws Error if one of the two cannot be
// opened, or if a sharded checkpoint lacks parameters of the model that it is compared with.
MCKPT_API Diff diff(const std::string& a, const std::string& b, const DiffOptions& options = {},
                    Observer* observer = nullptr);

}  // namespace mckpt
