// Tensors of a checkpoint whose files have no shapes (Driver::flat), with the shapes of the model:
//
//   "model.norm.weight"  [32]          shape [32]      as it is
//   "lm_head.weight"     [2272]        shape [71, 32]  items 0 to 1135 of rank 0     rows 0 to 34, and 16 items of row 35
//                                                      items 1136 to 2271 of rank 1  the rest of row 35, rows 36 to 70
//
// A rank has of a tensor a stretch of its items in row-major order, which is a few boxes
// (core/items/stretch_boxes.h). Nothing is copied.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "convert/own/disk_names.h"
#include "convert/own/model_section.h"

namespace mckpt::impl {

class Store;

// The store with the shapes of the model's tensors; their numbers stay. `folder`: as the model's Hugging Face
// folder has them. A tensor that shares the items of another one has its shape. pre: the store is
// flat. Throws kUnknownAssets if there are no shapes at all, kUnaccounted for tensors whose shapes are
// not known, kSourceShape for tensors that have another number of items than their shape.
std::unique_ptr<Store> with_shapes(std::unique_ptr<Store> store, std::span<const NamedTensor> model,
                                   const TensorShapes& folder, std::string_view model_type);

}  // namespace mckpt::impl
