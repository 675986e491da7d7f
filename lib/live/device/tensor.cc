// Calls the functions of the torch module's table, and turns the texts that they return into errors.
#include "live/device/tensor.h"

#include "core/base/error.h"
#include "live/device/device.h"
#include "runtime/modules/module.h"
#include "runtime/modules/tensor_table.h"

namespace mckpt::impl {
namespace {

const MckptTensorTable& table() { return module_functions<MckptTensorTable>("torch"); }

// Errors of libtorch are faults of mckpt: kInternal.
void check(const char* error) {
  if (error) throw Error(Code::kInternal, cat("libtorch: ", escaped(error, 500)));
}

void* make(DType dtype, const Shape& shape, u8* data, const char* device) {
  void* handle = nullptr;
  check(table().make(std::string(dtype_name(dtype)).c_str(), shape.dims().data(), shape.rank(), data, device,
                     &handle));
  return handle;
}

}  // namespace

Tensor::Tensor(void* handle) : handle_(handle, [](void* h) { table().release(h); }) {}

Tensor Tensor::over(DType dtype, const Shape& shape, u8* data, Device& device) {
  device.load_torch();
  return Tensor(make(dtype, shape, data, device.name()));
}

Tensor Tensor::meta(DType dtype, const Shape& shape) { return Tensor(make(dtype, shape, nullptr, "meta")); }

void Tensor::set_threads(int threads) { check(table().set_threads(threads)); }

Tensor::Facts Tensor::facts() const {
  MckptTensorFacts f{};
  check(table().facts(handle_.get(), &f));
  Facts facts;
  facts.dtype = dtype_from_name(f.dtype);
  facts.shape = Shape(std::span(f.dims, static_cast<std::size_t>(f.rank)));
  facts.device = f.device;
  facts.meta = facts.device == "meta";
  if (!facts.meta) facts.bytes = {static_cast<u8*>(f.data), static_cast<std::size_t>(f.bytes)};
  return facts;
}

Tensor Tensor::rows(std::span<const RowRange> rows) const {
  std::vector<i64> pairs;
  for (const RowRange& r : rows) pairs.insert(pairs.end(), {r.begin, r.end});
  void* out = nullptr;
  check(table().rows(handle_.get(), pairs.data(), static_cast<i32>(rows.size()), &out));
  return Tensor(out);
}

}  // namespace mckpt::impl
