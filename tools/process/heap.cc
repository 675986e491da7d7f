// How the heap is laid out:
//
//   sbrk(0) ... | first piece | 2 MiB | 2 MiB | ... 256 MiB of address space, in huge pages
//                             ^ a boundary of huge pages
//
// Tables of headers grow by doubling. In one heap their old halves are used again; if they were given back to
// the kernel each time, every page of them would be faulted in anew. A huge page faults once for 2 MiB, and
// the room costs nothing until it is used. Measured (docs/performance.md): `ls` of a DCP checkpoint with
// 10,000 tensors has 244 page faults where it had 450 to 900, and takes 25.6 ms where it took 28.9.
#include "tools/process/heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace mckpt::impl {

void prepare_heap() {
  constexpr int kRoom = 256 << 20;
  constexpr std::size_t kPage = 4 << 10, kHugePage = 2 << 20;
  constexpr std::size_t kFirst = 192 << 10;  // more than is left: the heap grows
  mallopt(M_MMAP_THRESHOLD, 32 << 20);       // the most that it takes
  mallopt(M_TRIM_THRESHOLD, 2 * kRoom);
  mallopt(M_TOP_PAD, kRoom);
  // The allocator writes in front of and behind its first piece at once, and the kernel makes no huge page
  // where a small page is: so that piece ends right before the first huge page.
  auto misfit = reinterpret_cast<std::size_t>(sbrk(0)) + kFirst + kPage;
  sbrk(static_cast<std::intptr_t>(-misfit % kHugePage));
  void* first = std::malloc(kFirst);
  char *begin = static_cast<char*>(first) + kFirst, *end = static_cast<char*>(sbrk(0));
  begin += -reinterpret_cast<std::size_t>(begin) % kPage;
  if (first != nullptr && begin < end) madvise(begin, static_cast<std::size_t>(end - begin), MADV_HUGEPAGE);
  std::free(first);
  mallopt(M_TOP_PAD, 1 << 20);
}

}  // namespace mckpt::impl
