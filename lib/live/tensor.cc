#include "live/tensor.h"

#include "runtime/module.h"
#include "runtime/tensor_table.h"

namespace mckpt {
namespace {

const MckptTensorTable& table() {
  const Module& module = load_module("torch");
  const auto* table = static_cast<const MckptTensorTable*>(module.table->functions);
  if (!table || table->struct_size < sizeof(MckptTensorTable))
    throw Error(Code::kModuleMismatch, "the functions of the torch module are not those that are wanted")
        .file(module.path)
        .expected(cat(sizeof(MckptTensorTable), " bytes"))
        .found(cat(table ? table->struct_size : 0, " bytes"));
  return *table;
}

void check(const char* error) {
  if (error) throw Error(Code::kInternal, cat("libtorch: ", escaped(error, 500)));
}

}  // namespace

Tensor::Tensor(void* handle) : handle_(handle, [](void* h) { table().release(h); }) {}

Tensor Tensor::over(DType dtype, const Shape& shape, u8* data) {
  void* handle = nullptr;
  check(
      table().make(std::string(dtype_name(dtype)).c_str(), shape.dims().data(), shape.rank(), data, &handle));
  return Tensor(handle);
}

Tensor Tensor::meta(DType dtype, const Shape& shape) { return over(dtype, shape, nullptr); }

void Tensor::set_threads(int threads) { check(table().set_threads(threads)); }

Tensor::Facts Tensor::facts() const {
  MckptTensorFacts f{};
  check(table().facts(handle_.get(), &f));
  Facts facts;
  facts.dtype = dtype_from_name(f.dtype);
  facts.shape = Shape(std::span(f.dims, static_cast<std::size_t>(f.rank)));
  facts.meta = std::string_view(f.device) == "meta";
  if (!facts.meta) facts.bytes = {static_cast<u8*>(f.data), static_cast<std::size_t>(f.bytes)};
  return facts;
}

void Tensor::copy_from(const Tensor& from) { check(table().copy(from.handle_.get(), handle_.get())); }

Tensor Tensor::rows(std::span<const RowRange> rows) const {
  std::vector<i64> pairs;
  for (const RowRange& r : rows) pairs.insert(pairs.end(), {r.begin, r.end});
  void* out = nullptr;
  check(table().rows(handle_.get(), pairs.data(), static_cast<i32>(rows.size()), &out));
  return Tensor(out);
}

}  // namespace mckpt
