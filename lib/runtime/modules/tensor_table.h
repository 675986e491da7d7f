// The functions of the torch module behind `MckptModule::functions`: tensors, and what only libtorch does
// with them. Memory belongs to the caller; a tensor is a view of it, or of none (on torch's meta device).
#pragma once

#include <cstdint>

extern "C" {

enum { kMckptTensorDims = 64 };

// What a tensor says about itself.
struct MckptTensorFacts {
  const char* dtype;  // "bfloat16"
  char device[32];    // "cpu", "cuda:0", "meta"
  void* data;         // null on the meta device
  std::int64_t bytes;
  std::int32_t rank;
  std::int64_t dims[kMckptTensorDims];
};

struct MckptTensorTable {
  std::uint32_t struct_size;
  const char* (*set_threads)(std::int32_t threads);
  // A row-major tensor over `data`, which lies on `device` and must outlive it; on the meta device where that
  // is null.
  const char* (*make)(const char* dtype, const std::int64_t* dims, std::int32_t rank, void* data,
                      const char* device, void** tensor);
  void (*release)(void* tensor);
  const char* (*facts)(void* tensor, MckptTensorFacts* facts);
  // The rows [pairs[2i], pairs[2i+1]) one after the other, as a tensor with memory of its own.
  const char* (*rows)(void* tensor, const std::int64_t* pairs, std::int32_t count, void** out);
};
}
