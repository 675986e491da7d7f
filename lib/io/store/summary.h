// The contents of a store in a few numbers: tensors, parameters and bytes, by part (model, optimizer, other)
// and by data type. No data are read.
//
// Items and parameters differ where values are packed: a uint8 tensor of 1,000 items with two 4-bit values in
// each is 2,000 parameters of the model, but 1,000 items of its data type.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/store/state_part.h"

namespace mckpt::impl {

enum class DType : u8;
class Store;

// Sums over some tensors.
struct Amount {
  i64 tensors = 0, items = 0, bytes = 0;
  void add(i64 more_items, i64 more_bytes);  // a tensor; throws kSizeOverflow
};

// A value, independent of the store.
struct StoreSummary {
  Amount all;
  Amount parts[3];  // by StatePart; for the model, `items` are parameters, packed ones counted one by one
  struct OfType {
    DType dtype;
    Amount amount;
  };
  std::vector<OfType> dtypes;  // sorted by bytes, most first
  i64 file_bytes = 0;          // of the files that exist

  const Amount& part(StatePart p) const { return parts[static_cast<std::size_t>(p)]; }
};

// The numbers of parameters of quantised tensors by their names, from who decodes them. Nothing: the tensor
// has no parameters, and belongs to codes, as a scale.
using PackedParameters = std::map<std::string, std::optional<i64>, std::less<>>;

// Throws kSizeOverflow if the declared sizes add up to more than 63 bits.
StoreSummary summarize(const Store& store, const PackedParameters& packed = {});

}  // namespace mckpt::impl
