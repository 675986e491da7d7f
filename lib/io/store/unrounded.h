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

// A store that computes tensors, or shows one that does under other names, has this beside its own interface:
// Store::unrounded() returns it.
class UnroundedValues {
 public:
  virtual ~UnroundedValues() = default;
  // Whether items of the tensor are rounded when they are read.
  virtual bool is_rounded(i64 tensor) const = 0;
  // The chunk as float32, also of a tensor that is stored as it is. pre: is_castable(dtype of the tensor).
  virtual ChunkData resolve_unrounded(i64 tensor, i64 index) const = 0;
};

}  // namespace mckpt::impl
