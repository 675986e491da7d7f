// The structures by which DLPack passes memory from one library to another in the same process, as its
// versions 0.x and 1.x lay them out.
#pragma once

#include <cstdint>

namespace mckpt::impl {

enum DlpackDevice : std::int32_t { kDlpackHost = 1, kDlpackCuda = 2 };

struct DlpackTensor {
  void* data;
  std::int32_t device_type, device_number;
  std::int32_t rank;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } type;
  std::int64_t *shape, *strides;  // strides in items
  std::uint64_t byte_offset;
};

// The holder owns it, and frees it by calling `deleter`.
struct DlpackManaged {
  DlpackTensor tensor;
  void* context;
  void (*deleter)(DlpackManaged*);
};

}  // namespace mckpt::impl
