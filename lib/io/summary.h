// What a store holds, in a few numbers.
#pragma once

#include <string_view>
#include <vector>

#include "io/store.h"

namespace mckpt {

// What a tensor is for, told by its name: parameters, the state of an optimizer, or neither (random states,
// buffers that a layer keeps as bytes).
enum class StatePart : u8 { kModel, kOptimizer, kOther };
StatePart part_of(std::string_view name);
std::string_view part_name(StatePart part);  // "model"

struct Amount {
  i64 tensors = 0, items = 0, bytes = 0;
  void add(i64 more_items, i64 more_bytes);
};

struct StoreSummary {
  Amount all;
  Amount parts[3];  // by StatePart
  struct OfType {
    DType dtype;
    Amount amount;
  };
  std::vector<OfType> dtypes;  // of most bytes first
  i64 file_bytes = 0;          // of the files that are there

  const Amount& part(StatePart p) const { return parts[static_cast<std::size_t>(p)]; }
};

StoreSummary summarize(const Store& store);

}  // namespace mckpt
