// From 4 MiB on memory is mapped.
#include "hf/quantized/large_bytes.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace mckpt::impl {
namespace {

constexpr i64 kMapped = i64{4} << 20;

}  // namespace

LargeBytes::LargeBytes(i64 bytes) : size_(bytes) {
  if (bytes == 0) return;
  std::size_t size = static_cast<std::size_t>(bytes);
  void* at = bytes < kMapped
                 ? std::calloc(1, size)
                 : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == nullptr || at == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<u8*>(at);
}

LargeBytes::~LargeBytes() {
  if (size_ < kMapped)
    std::free(data_);
  else
    ::munmap(data_, static_cast<std::size_t>(size_));
}

}  // namespace mckpt::impl
