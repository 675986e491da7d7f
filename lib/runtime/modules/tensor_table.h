// The functions of the torch module behind `MckptModule::functions`: tensors, and operations that only
// libtorch has. Memory belongs to the caller; a tensor is a view of it, or has no memory (on torch's meta
// device). Errors are returned as texts, as module_abi.h describes.
#pragma once

#include <cstdint>

extern "C" {

enum { kMckptTensorDims = 64 };

// The facts about one tensor. The text `dtype` is a constant of the module.
struct MckptTensorFacts {
  const char* dtype;  // "bfloat16"
  char device[32];    // "cpu", "cuda:0", "meta"
  void* data;         // null on the meta device
  std::int64_t bytes;
  std::int32_t rank;
  std::int64_t dims[kMckptTensorDims];
};

// Tensors are opaque pointers: make() and rows() make them, release() frees them, but never the memory of
// make().
struct MckptTensorTable {
  std::uint32_t struct_size;
  const char* (*set_threads)(std::int32_t threads);
  // A row-major tensor over `data`, which is on `device` and must outlive the tensor. A null `data` makes a
  // tensor on the meta device.
  const char* (*make)(const char* dtype, const std::int64_t* dims, std::int32_t rank, void* data,
                      const char* device, void** tensor);
  void (*release)(void* tensor);
  const char* (*facts)(void* tensor, MckptTensorFacts* facts);
  // The rows [pairs[2i], pairs[2i+1]) one after the other, as a tensor with memory of its own.
  const char* (*rows)(void* tensor, const std::int64_t* pairs, std::int32_t count, void** out);
};
}
