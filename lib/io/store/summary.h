// What a store holds, in a few numbers.
#pragma once

#include <vector>

#include "core/base/int.h"
#include "io/store/state_part.h"

namespace mckpt::impl {

enum class DType : u8;
class Store;

struct Amount {
  i64 tensors = 0, items = 0, bytes = 0;
  void add(i64 more_items, i64 more_bytes);
};

struct StoreSummary {
  Amount all;
  Amount parts[3];  // by StatePart; of the model, `items` are parameters, packed ones counted one by one
  struct OfType {
    DType dtype;
    Amount amount;
  };
  std::vector<OfType> dtypes;  // of most bytes first
  i64 file_bytes = 0;          // of the files that are there

  const Amount& part(StatePart p) const { return parts[static_cast<std::size_t>(p)]; }
};

StoreSummary summarize(const Store& store);

}  // namespace mckpt::impl
