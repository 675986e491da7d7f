#include "io/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/int.h"

namespace mckpt {

void prefer_huge_pages(void* begin, std::size_t bytes) {
  auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::size_t skip = -reinterpret_cast<std::size_t>(begin) % page;
  if (bytes > skip) ::madvise(static_cast<u8*>(begin) + skip, bytes - skip, MADV_HUGEPAGE);
}

}  // namespace mckpt
