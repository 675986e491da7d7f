// diff(): what is different in two checkpoints, tensor by tensor, as rows. Both sides may have any format,
// grid and data type; where their names differ, one is compared with what converting the other would write,
// as compare() does.
//
//   values   model.layers.3.mlp.down_proj.weight   [0, 17]   0.5 | 0.25   17 items   relative L2 2.1e-3
//   only_b   lm_head.weight                        bfloat16 [32, 16]
//
// Rows of values come in order of how far apart the tensors are, weights before states of an optimizer, and
// random states and the like at the end; tensors in another order that are the same, such as swapped experts,
// are found among those that have nothing in common (order.h).
#pragma once

#include <string>
#include <vector>

#include "convert/compare/compare.h"
#include "convert/rank/live_side.h"
#include "core/base/int.h"
#include "io/store/soundness.h"
#include "io/store/state_part.h"
#include "io/values/distance.h"

namespace mckpt::impl {

class Observer;

// One tensor, object or file that is not the same.
struct DiffRow {
  enum class Kind : u8 {
    kOnlyA,
    kOnlyB,  // a tensor that one side has; a or b is its type and shape
    kShape,  // the values were not compared
    kDtype,  // another type, of which not both are floats of 16 bits or more: the values were not compared
    // An attribute of a parameter of a live rank, or the place of its part, which is named by `at`.
    kAttribute,
    kValues,  // items differ: the first one is at `at`
    // Another type, or values that one side has as codes and scales. They were compared in a type that has
    // all values of both, and are equal unless the tensor has a row of values too.
    kCast,
    kObject,  // a value of something that is not a tensor, at `at`
    kFile,    // a file beside the tensors, such as config.json
  };
  Kind kind = Kind::kValues;
  std::string name{}, at{};
  std::string a{}, b{};  // "bfloat16 [2, 3]", or the values at `at`; "": what a side does not have
  i64 items = -1;        // how many items differ; -1: not counted
  i64 beyond = -1;       // of these, items beyond the tolerance
  std::optional<ValueDistance> distance{};
  std::string file{};  // of a, if one file has the first difference
  std::string hint{};  // what the tensor looks like: "the same values as B's ...experts.5..."
  StatePart part = StatePart::kModel;

  bool alike() const { return kind == Kind::kValues && beyond == 0; }  // within the tolerance
  bool of_tensor() const { return kind != Kind::kObject && kind != Kind::kFile; }
  // Numbers of the distance; nothing where one side alone has NaN or infinities, which are in no distance.
  std::optional<double> relative_l2() const;
  std::optional<double> cosine() const;
  // `a` or `b` as people read it: of a digest its beginning, which the JSON has whole.
  std::string brief(const std::string& value) const;
  i64 not_finite() const { return distance ? distance->not_finite : 0; }
};
// "only_a", "values", ...
std::string_view kind_name(DiffRow::Kind kind);
// The purpose of a tensor of this name, as lists and counts of a diff take it.
StatePart diff_part(std::string_view name);

struct Diff {
  bool equal = false;  // everything that was chosen was compared, and there is no row
  bool alike = false;  // everything that was chosen was compared, and every row is within its tolerance
  std::vector<DiffRow> rows{};
  std::vector<Finding> findings{};  // of the report, those that no row says
  std::vector<char> sides{};        // of each finding: 'a' or 'b', whose damage it is, or 0
  VerifyReport report{};
  std::vector<Oddities> oddities{};
  std::string root_a{}, root_b{};  // what was opened of the two paths
  std::string choice{};            // the pattern by which tensors were chosen; "": everything was compared

  i64 tensors() const;  // how many were compared
};

// Tolerances by names: the first rule whose glob matches decides.
struct ToleranceRules {
  struct Rule {
    std::string glob;
    Tolerance within;
  };
  std::vector<Rule> rules{};
  Tolerance otherwise{};

  Tolerance of(std::string_view tensor) const;
};

struct DiffOptions {
  CompareOptions comparing{};  // `counting` and `any_type` are set by diff()
  ToleranceRules within{};
  // All that is asked is whether the two are alike: without a tolerance nothing is read after the first
  // difference, which is then the only row.
  bool first_decides = false;
  // One of the two is a dump of a live rank, the other the model (rank_diff.h).
  std::optional<LiveSide> live{};
};

// Reads all data of both sides once, and again where they differ. Where one side is the folder of an adapter,
// and the options name no base, the other side is its base. Throws what compare() throws, and
// kNoSuchTensor for a rule that matches no compared tensor.
Diff diff(const std::string& a, const std::string& b, const DiffOptions& options, Observer& observer);

}  // namespace mckpt::impl
