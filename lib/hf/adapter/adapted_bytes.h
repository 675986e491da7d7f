// A source of bytes that computes: a tensor of a base with an adapter in it, as if it were in a file. A read
// of rows reads these rows of the base, and adds to each the sum of the adapter's rows, in float:
//
//   row i = round(W[i] + scale * (B[i, 0] * A[0] + B[i, 1] * A[1] + ...))        rounded once, to the type of the base
//
// Nothing is computed before it is read. Factors are read when they are first wanted, and those used last are
// kept.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/base/int.h"
#include "hf/adapter/pairing.h"
#include "io/file/file.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

// The stores of a base and its adapter, and factors of the adapter in memory. Thread-safe. The stores outlive
// it.
class AdapterMemory {
 public:
  AdapterMemory(const Store& base, const Store& adapter);

  // The values of a tensor of the adapter, [rows, columns], or its transpose; row-major.
  using Values = std::shared_ptr<const std::vector<float>>;
  Values values(i64 tensor, bool transposed);

  // Items [first, first + count) of a tensor, in their type.
  void read_base(i64 tensor, i64 first, i64 count, u8* out) const;
  void read_adapter(i64 tensor, i64 first, i64 count, u8* out) const;

  const Store& base() const { return base_; }
  const Store& adapter() const { return adapter_; }

 private:
  struct Kept {
    i64 tensor = -1;
    bool transposed = false;
    Values values;
  };
  Values find(i64 tensor, bool transposed);
  void keep(Kept kept);

  const Store &base_, &adapter_;
  StoreBytes base_bytes_, adapter_bytes_;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // the one used last is the last
  i64 kept_items_ = 0;
};

// The tensor of the base with the adapter in it: row-major items of the base's type. Both arguments outlive
// it.
std::shared_ptr<const ByteSource> adapted_bytes(const AdaptedTensor& tensor, AdapterMemory& memory);

}  // namespace mckpt::impl
