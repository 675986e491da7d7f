// Memory of the GPU comes from its driver; pinned memory of the host is made of pages that this process maps
// and then pins. Errors give the free and the total memory of the GPU.
#include "live/cuda/memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/base/error.h"
#include "io/file/parallel.h"
#include "live/cuda/calls.h"
#include "runtime/system/memory_room.h"

namespace mckpt::impl {
namespace {

MckptGpuFacts gpu_facts(void* opened) {
  MckptGpuFacts gpu{};
  check_cuda(cuda().facts(opened, &gpu), "looking at the GPU");
  return gpu;
}

Error out_of_gpu_memory(i64 bytes, const MckptGpuFacts& gpu) {
  return Error(Code::kOutOfMemory, "there is not enough memory on the GPU for the weights")
      .expected(cat(bytes, " bytes"))
      .found(cat(gpu.free_bytes, " bytes free of ", gpu.total_bytes, ", on ", escaped(gpu.name)))
      .help("use more ranks, each with its own GPU, or `device` cpu");
}

// Owns pages of memory. Throws out_of_memory() if the system has none; `bytes` and `what` are for the error.
class Mapping {
 public:
  Mapping(i64 bytes, std::size_t mapped, const char* what) : size_(mapped) {
    void* at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw out_of_memory(bytes, what);
    begin_ = static_cast<u8*>(at);
  }
  ~Mapping() { ::munmap(begin_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  u8* begin() const { return begin_; }

 private:
  std::size_t size_;
  u8* begin_ = nullptr;
};

}  // namespace

u8* GpuMemory::allocate(i64 bytes) {
  void* data = nullptr;
  check_cuda(cuda().allocate(gpu_, bytes, &data), "allocating");
  if (!data) throw out_of_gpu_memory(bytes, gpu_facts(gpu_));
  return static_cast<u8*>(data);
}

void GpuMemory::check_room(i64 bytes) const {
  if (MckptGpuFacts gpu = gpu_facts(gpu_); gpu.free_bytes < bytes) throw out_of_gpu_memory(bytes, gpu);
}

// Errors are ignored: a GPU that has failed also fails the next wait, which throws.
void GpuMemory::release(u8* data) { cuda().release(gpu_, data); }

// Mapped pages that are pinned afterwards. They are huge pages if the system has them, because pinning costs
// time for each page, and are touched by several threads. The driver's own allocation of pinned memory takes
// six times as long.
class PinnedMemory::Pages {
 public:
  static constexpr const char* kWhat = "the pinned buffers of a GPU";

  Pages(void* gpu, i64 bytes)
      : gpu_(gpu), bytes_(checked_room(bytes)), mapping_(bytes, mapped_bytes(bytes), kWhat) {
    touch();
    bool pinned = false;
    check_cuda(cuda().register_host(gpu_, data(), bytes, &pinned), "pinning memory");
    if (!pinned) throw out_of_memory(bytes, kWhat);
  }
  ~Pages() { cuda().unregister_host(gpu_, data()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // The first address of the mapping that is a multiple of 2 MiB, so that huge pages fit.
  u8* data() const {
    std::uintptr_t at = reinterpret_cast<std::uintptr_t>(mapping_.begin());
    return mapping_.begin() + (kHuge - at % kHuge) % kHuge;
  }

 private:
  static constexpr i64 kHuge = i64{2} << 20;

  static i64 checked_room(i64 bytes) {
    check_memory_room(bytes, kWhat);
    return bytes;
  }
  static std::size_t mapped_bytes(i64 bytes) {
    return static_cast<std::size_t>(round_up(bytes, kHuge, kWhat) + kHuge);
  }

  // Makes the pages exist. Errors of madvise() cost only time: pages that are missing are made when they are
  // pinned.
  void touch() const {
    constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
    constexpr i64 kPiece = 2 * kHuge;
    std::size_t all = static_cast<std::size_t>(bytes_);
    ::madvise(data(), all, MADV_HUGEPAGE);
    parallel_for(ceil_div(bytes_, kPiece), 4, [&](int, i64 i) {
      i64 begin = i * kPiece, piece = std::min(kPiece, bytes_ - begin);
      ::madvise(data() + begin, static_cast<std::size_t>(piece), kPopulateWrite);
    });
  }

  void* gpu_;
  i64 bytes_;
  Mapping mapping_;
};

PinnedMemory::PinnedMemory(void* gpu) : gpu_(gpu) {}
PinnedMemory::~PinnedMemory() = default;

u8* PinnedMemory::allocate(i64 bytes) {
  auto made = std::make_unique<Pages>(gpu_, bytes);
  u8* data = made->data();
  std::lock_guard lock(mutex_);
  pages_.emplace(data, std::move(made));
  return data;
}

void PinnedMemory::check_room(i64 bytes) const { check_memory_room(bytes, Pages::kWhat); }

// The pages are unpinned without the lock, because that takes long.
void PinnedMemory::release(u8* data) {
  std::unique_ptr<Pages> ended;  // without the lock
  std::lock_guard lock(mutex_);
  auto found = pages_.find(data);
  ended = std::move(found->second);
  pages_.erase(found);
}

}  // namespace mckpt::impl
