// The items of a parameter's local order that are in a box of its tensor, as a rank may hold one: rows of a
// flat buffer, rows of torch's FSDP, columns of a DTensor.
//
//   [4, 6], box [2, 3] at [1, 0]     local order 6..9, 12..15
#pragma once

#include <optional>
#include <vector>

#include "core/base/int.h"
#include "core/items/item_run.h"

namespace mckpt::impl {

struct HeldTensor;

// The tensor that coordinates belong to: the part of the rank's cell, or the parts of all cells.
enum class BoxSpace : u8 { kCell, kAllCells };

// The shape of the tensor `held` in that space.
std::vector<i64> shape_in(const HeldTensor& held, BoxSpace space);
// Ranges in ascending order. Nothing for a box that is not inside the part of the rank's cell.
std::optional<std::vector<ItemRange>> items_of_box(const HeldTensor& held, std::vector<i64> offsets,
                                                   const std::vector<i64>& sizes, BoxSpace space);

}  // namespace mckpt::impl
