// Memory in huge pages, where the system lets programs ask for them: the kernel hands out 2 MB at a time, not
// 4 KB, and reading a header is not interrupted for each page of the tables that come of it.
#pragma once

#include <cstddef>

namespace mckpt {

// For memory that is not yet touched. Nothing happens where it cannot be.
void prefer_huge_pages(void* begin, std::size_t bytes);

}  // namespace mckpt
