// ChangeMap: how much every kind of tensor changed in every layer, from the rows of a diff. All experts of a
// layer are one cell, which has the largest change of them.
//
//   kind                          layer 0    1          2
//   self_attn.q_proj.weight       equal      2.1e-3     equal
//   mlp.experts.*.up_proj.weight  equal      1 of 256   equal
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "page/data/tensor_place.h"

namespace mckpt::impl {

struct Diff;

struct ChangeCell {
  i64 layer = -1;
  i64 tensors = 0;
  i64 differ = 0;  // of them, in values beyond the tolerance
  i64 within = 0;  // in values, but within the tolerance
  // That one side has; with another shape or a type that was not compared
  i64 only_a = 0, only_b = 0, header = 0;
  i64 not_finite = 0;               // with NaN or infinities on one side
  i64 casts = 0;                    // of another type, compared by value
  bool moved = false;               // the values of one of them were found elsewhere
  std::optional<double> largest{};  // relative L2; none where it was not measured
};

struct ChangeKind {
  std::string section, kind;
  ModulePart part = ModulePart::kOther;
  std::vector<ChangeCell> cells{};  // by layer, ascending
};

struct ChangeMap {
  std::vector<ChangeKind> kinds{};
  i64 kinds_left_out = 0;  // those beyond the limit, which did not change
};

ChangeMap change_map(const Diff& diff, i64 most_cells = 20'000);

}  // namespace mckpt::impl
