// A source of bytes that computes: a tensor of a base with an adapter in it, as if it were in a file. A read
// of rows reads these rows of the base, and adds to each the sum of the adapter's rows, in float:
//
//   row i = round(W[i] + scale * (B[i, 0] * A[0] + B[i, 1] * A[1] + ...))
//
// It is rounded once: to the type of the base, or not at all for a reader that rounds to another type.
//
// Nothing is computed before it is read. Factors are read when they are first wanted, and those used last are
// kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "hf/adapter/lora/pairing.h"
#include "io/file/file.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class LostValues;

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

  // magnitude / norm of each column of a turned tensor: `make` computes them where they are not kept.
  Values column_factors(const AdaptedFactors& of, const std::function<std::vector<float>()>& make);

  // Counts values that the adapter made infinite of finite ones, of tensors by name.
  void count_infinite(const std::string& name, i64 items);
  void add_losses(LostValues& lost) const;

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
  mutable std::mutex mutex_;
  std::vector<Kept> kept_;  // the one used last is the last
  i64 kept_items_ = 0;
  std::map<const AdaptedFactors*, Values> column_factors_;
  std::map<std::string, i64> infinite_;
};

// The tensor of the base with the adapter in it: row-major items of `type`, which is the base's, or float32
// for values that are not rounded. Both arguments outlive it.
std::shared_ptr<const ByteSource> adapted_bytes(const AdaptedTensor& tensor, DType type,
                                                AdapterMemory& memory);

}  // namespace mckpt::impl
