// Tensor: a tensor of libtorch, reached through the torch module. It is a view of memory that belongs to whoever
// made it, or of none: then it is on the meta device and has a type and a shape alone.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

class Device;
struct RowRange;

class Tensor {
 public:
  // These load the torch module at the first call. Throw kModuleMissing that says how to get it.
  static Tensor meta(DType dtype, const Shape& shape);
  static Tensor over(DType dtype, const Shape& shape, u8* data, Device& device);
  // How many threads libtorch may use in this process.
  static void set_threads(int threads);

  // What libtorch says of it.
  struct Facts {
    DType dtype = DType::kBF16;
    Shape shape;
    bool meta = false;
    std::string device;   // "cpu", "cuda:0", "meta"
    std::span<u8> bytes;  // of that device; empty on the meta device
  };
  Facts facts() const;

  // Those rows one after the other, in memory of its own. pre: not on the meta device.
  Tensor rows(std::span<const RowRange> rows) const;

 private:
  explicit Tensor(void* handle);
  std::shared_ptr<void> handle_;
};

}  // namespace mckpt::impl
