// The values that one cell holds of a parameter, in its local order, gathered from the files of a model.
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

class HoldingReader {
 public:
  // One belongs to one thread. The tensors of the source table are those of the store, in its order.
  HoldingReader(const Store& store, const StoreFiles& files) : reader_(store, files) {}

  // Throws kBadCast. Calls `take` with the items [range) of the parameter's local order, converted, piece by piece. Takes a
  // few MiB of memory.
  void read(const ModelParameter& parameter, ItemRange range, DType to,
            const std::function<void(std::span<const u8>)>& take);

 private:
  void gather(const ModelParameter& parameter, ItemRange window, i64 item_bytes);
  void gather_run(const ItemRun& run, i32 tensor, i64 at, i64 item_bytes);

  TensorReader reader_;
  std::vector<u8> window_, converted_;
};

// What happens to a parameter's values between the source's type and that in which they are stored.
ItemCast import_cast(const ModelParameter& parameter, DType stored);

}  // namespace mckpt::impl
