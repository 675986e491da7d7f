// Tensor: a tensor of libtorch, reached through the torch module. It is a view of memory that belongs to the
// caller, or it is on the meta device and has only a type and a shape.
//
//   Tensor::meta(kBF16, {4096, 1024})                       8 MiB of weights that do not exist yet
//   Tensor::over(kBF16, {4096, 1024}, memory, device)       the same shape over memory of a group
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/hybrid/cp_slice.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

class Device;

// A shared handle: copies refer to one tensor of libtorch, which is freed with the last of them.
class Tensor {
 public:
  // Both load the torch module at the first call, and throw kModuleMissing if it is not installed. The memory
  // of over() outlives the tensor.
  static Tensor meta(DType dtype, const Shape& shape);
  static Tensor over(DType dtype, const Shape& shape, u8* data, Device& device);
  // How many threads libtorch may use in this process.
  static void set_threads(int threads);

  // The facts that libtorch gives about the tensor.
  struct Facts {
    DType dtype = DType::kBF16;
    Shape shape;
    bool meta = false;
    std::string device;   // "cpu", "cuda:0", "meta"
    std::span<u8> bytes;  // of that device; empty on the meta device
  };
  Facts facts() const;

  // A new tensor with these rows one after the other, in memory of its own. pre: not on the meta device;
  // `rows` is not empty.
  Tensor rows(std::span<const RowRange> rows) const;

 private:
  explicit Tensor(void* handle);
  std::shared_ptr<void> handle_;
};

}  // namespace mckpt::impl
