// Which sources of a job are read before a view rounds them (io/store/unrounded.h): those that are written in
// another type than the view's, so that their values are rounded once.
#pragma once

#include <functional>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

class ChunkList;
class KeyTable;
class Store;

// By tensor, for targets whose keys are tensors of the source; empty: none.
std::vector<bool> unrounded_tensors(const Store& source, const ChunkList& to);
// The type in which such a tensor is read.
DType read_type(const Store& source, i64 tensor, const std::vector<bool>& unrounded);

// By family of parameters (convert/jobs/chunk_jobs.cc), whose tensors are read in one type; empty: none. -1
// is not a family.
struct FamilyOf {
  std::function<i32(i32 tensor)> tensor;
  std::function<i32(i32 parameter)> parameter;
};
std::vector<bool> unrounded_families(const Store& source, const KeyTable& keys, const ChunkList& to,
                                     i64 count, const FamilyOf& family_of);

}  // namespace mckpt::impl
