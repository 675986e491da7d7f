// Values that a view computes, before they are rounded to the type of their tensor. A conversion that writes
// another type reads them, so that they are rounded once:
//
//   base bf16 + adapter   -->   float32   -->   bf16        what the view has: ChunkData of Store::resolve()
//                                         -->   float32     nothing is rounded
//                                         -->   fp16        rounded once, and what is lost is a loss of the cast
#pragma once

#include "core/base/int.h"
#include "io/store/store.h"

namespace mckpt::impl {

// What a store is beside a Store, if it computes tensors, or shows one that does under other names.
class UnroundedValues {
 public:
  virtual ~UnroundedValues() = default;
  // Whether items of the tensor are rounded when they are read.
  virtual bool is_rounded(i64 tensor) const = 0;
  // The chunk as float32, also of a tensor that is stored as it is. pre: is_castable(dtype of the tensor).
  virtual ChunkData resolve_unrounded(i64 tensor, i64 index) const = 0;
};

// Null if the store is none.
inline const UnroundedValues* unrounded_values(const Store& store) {
  return dynamic_cast<const UnroundedValues*>(&store);
}

}  // namespace mckpt::impl
