// How much memory this process could still get, and the error that reports it. Linux grants more memory than
// it has and ends a process when it uses it, without a message; so large amounts are checked here before they
// are allocated:
//
//   check_memory_room(40 GB, "live tensors")
//       MemAvailable + SwapFree                      62 GB
//       container's limit - used + page cache        32 GB      -->  throws: 32 GB free, by the container's limit
//       ulimit -v                                    -
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/int.h"

namespace mckpt::impl {

// The smallest of all limits, and which limit it is.
struct MemoryRoom {
  i64 bytes = -1;  // -1: not known
  std::string of;  // the limit that is the smallest, as a message names it: "the system"
};

// The smallest of the memory that the machine has available, swap included, and the memory that each limit
// leaves. The page cache counts as free. `root` is put before the paths of the system's own files, for tests.
MemoryRoom memory_room(const std::string& root = "");

// The error kOutOfMemory with the needed and the free bytes. `what` names the memory: "live tensors and
// buffers".
Error out_of_memory(i64 needed_bytes, std::string_view what);

// Throws out_of_memory() if the process could not get so much. Amounts below 64 MiB are not checked.
void check_memory_room(i64 needed_bytes, std::string_view what);

}  // namespace mckpt::impl
