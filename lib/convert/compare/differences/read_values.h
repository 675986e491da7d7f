// Tensors of the same name and shape that one side stores in another order than row by row: at strides,
// with the bytes of each item swapped, or compressed; or that the two store in types between which no
// conversion casts. No bytes of such a file equal a conversion's result, so both sides are read as `cat` and
// `stats` read them, and compared; items of another type are cast to the tested side's type.
//
//   views.pt   transposed  [3, 2] at strides (1, 3)  -- TensorReader -->  0 3 1 4 2 5  \.
//   v.safetensors          [3, 2] row by row         -- TensorReader -->  0 3 1 4 2 5  / equal
#pragma once

#include <set>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
class Comparison;
class Observer;
class Store;

// Whether items of two types are compared so: there is a type with all values of both.
bool is_compared_by_values(DType a, DType b);

// Compares these tensors, except those with numbers in `except`, and reports what differs or cannot be read
// to the comparison. Returns the numbers of the compared ones. Numbers are the tested side's. `computed`: a
// side has tensors that are computed when they are read, whatever its format is. Throws kInterrupted.
std::set<i64> compare_read_values(const Store& tested, const Store& source, const std::set<i64>& except,
                                  bool computed, Comparison& comparison, Observer& observer);

// Compares one tensor of each side in this way. Returns false without a comparison if their shapes differ, or
// their types and there is no cast between them.
bool compare_read_values(const Store& tested, const Store& source, i64 tested_tensor, i64 source_tensor,
                         Comparison& comparison, Observer& observer);

}  // namespace mckpt::impl
