// MckptTensorTable over ATen. A tensor over memory of another device is made like one on the CPU; operations
// on it need the library of that device, which the cuda module loads.
#include "live/device/torch_tensors.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/modules/module_guard.h"

namespace mckpt::impl {
namespace {

// The data types of live tensors, by mckpt's names.
struct Named {
  std::string_view name;
  at::ScalarType type;
};

constexpr Named kTypes[] = {
    {"bfloat16", at::kBFloat16},
    {"float16", at::kHalf},
    {"float32", at::kFloat},
    {"float64", at::kDouble},
    {"bool", at::kBool},
    {"uint8", at::kByte},
    {"int8", at::kChar},
    {"int16", at::kShort},
    {"int32", at::kInt},
    {"int64", at::kLong},
    {"float8_e4m3fn", at::kFloat8_e4m3fn},
};

at::ScalarType type_named(std::string_view name) {
  for (const Named& t : kTypes)
    if (t.name == name) return t.type;
  throw std::runtime_error("no live tensor has the type " + std::string(name));
}

const char* name_of(at::ScalarType type) {
  for (const Named& t : kTypes)
    if (t.type == type) return t.name.data();
  throw std::runtime_error("a tensor has a type that was not asked for");
}

at::Tensor& tensor_at(void* handle) { return *static_cast<at::Tensor*>(handle); }

const char* set_threads(std::int32_t threads) {
  return guarded([&] { at::set_num_threads(threads); });
}

const char* make(const char* dtype, const std::int64_t* dims, std::int32_t rank, void* data,
                 const char* device, void** tensor) {
  return guarded([&] {
    at::IntArrayRef sizes(dims, static_cast<std::size_t>(rank));
    at::TensorOptions options = at::TensorOptions().dtype(type_named(dtype));
    at::Device place = data ? at::Device(device) : at::Device(at::kMeta);
    // With a given device, ATen does not look the address up, which would start CUDA.
    at::Tensor made =
        data ? at::for_blob(data, sizes).options(options.device(place)).target_device(place).make_tensor()
             : at::empty(sizes, options.device(place));
    *tensor = new at::Tensor(std::move(made));
  });
}

void release(void* tensor) { delete static_cast<at::Tensor*>(tensor); }

// pre: `out` is zeroed, so that the device's name ends with a 0.
const char* facts(void* tensor, MckptTensorFacts* out) {
  return guarded([&] {
    const at::Tensor& t = tensor_at(tensor);
    out->dtype = name_of(t.scalar_type());
    std::string device = t.device().str();
    device.copy(out->device, sizeof out->device - 1);
    out->data = t.is_meta() ? nullptr : t.data_ptr();
    out->bytes = static_cast<std::int64_t>(t.nbytes());
    out->rank = static_cast<std::int32_t>(t.dim());
    if (t.dim() > kMckptTensorDims) throw std::runtime_error("a tensor has too many dimensions");
    for (std::int64_t d = 0; d < t.dim(); d++) out->dims[d] = t.size(d);
  });
}

// Waits for libtorch's work on the device. libtorch uses a stream of its own, which no lane follows, so
// results must be complete when a function of the table returns.
void finish_work_on(at::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

// Ranges of rows are views, which at::cat copies one after the other into a new tensor.
const char* rows(void* tensor, const std::int64_t* pairs, std::int32_t count, void** out) {
  return guarded([&] {
    const at::Tensor& t = tensor_at(tensor);
    if (t.is_meta()) throw std::runtime_error("the tensor has no memory to take rows of");
    std::vector<at::Tensor> parts;
    for (std::int32_t i = 0; i < count; i++)
      parts.push_back(t.narrow(0, pairs[2 * i], pairs[2 * i + 1] - pairs[2 * i]));
    at::Tensor joined = at::cat(parts, 0);
    finish_work_on(t.device());
    *out = new at::Tensor(std::move(joined));
  });
}

}  // namespace

const MckptTensorTable kTensorFunctions = {
    sizeof(MckptTensorTable), set_threads, make, release, facts, rows,
};

}  // namespace mckpt::impl
