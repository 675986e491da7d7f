// HoldingReader: the values of one parameter as one tensor-parallel cell holds them, gathered from the files
// of a Hugging Face model in the parameter's local order and converted to the type in which they are held.
//
//   linear_fc1, cell 1 of 2     gate_proj rows 64-127, up_proj rows 64-127     -->  take(bytes), take(bytes), ...
//
// It is the slow and simple way to the values of a few parameters, for digests and comparisons. Conversions
// use a ChunkJob and the copy engine instead.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

enum class DType : u8;
class Store;
class StoreFiles;
struct ItemCast;
struct ItemRange;
struct ItemRun;
struct ModelParameter;

// Reads parameters one after the other with one window of 4 Mi items. One reader belongs to one thread. pre:
// the store has the tensors of the model's source table, in that order; store and files outlive the reader.
class HoldingReader {
 public:
  HoldingReader(const Store& store, const StoreFiles& files) : reader_(store, files) {}

  // Calls `take` with the items [range) of the parameter's local order, converted, piece by piece and in
  // order. The span is valid during the call only. Throws kBadCast, and what reading the store throws.
  void read(const ModelParameter& parameter, ItemRange range, DType to,
            const std::function<void(std::span<const u8>)>& take);

 private:
  void gather(const ModelParameter& parameter, ItemRange window, i64 item_bytes);
  void gather_run(const ItemRun& run, i32 tensor, i64 at, i64 item_bytes);

  TensorReader reader_;
  std::vector<u8> window_, converted_;
};

// The cast of a parameter's values on the way from the source's type to the type in which they are stored,
// through the type that the training run gives the parameter if it chooses one.
ItemCast import_cast(const ModelParameter& parameter, DType stored);

}  // namespace mckpt::impl
