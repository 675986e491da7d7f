// How much memory this process could still get, and the error that says so. Linux grants memory that it has
// not got and ends a process when it uses it, without a word; so what is large is asked for here first.
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;

struct MemoryRoom {
  i64 bytes = -1;  // -1: the system does not tell
  std::string of;  // what has no more: "the system", "the limit of this container", "ulimit -v"
};

// The least of what the machine has available, swap included, and what each limit leaves. What files occupy
// in the page cache counts as free. `root` stands before the paths of the system's own files: for tests.
MemoryRoom memory_room(const std::string& root = "");

// kOutOfMemory with what was needed and what is free. `what` is "live tensors and buffers".
Error out_of_memory(i64 needed_bytes, std::string_view what);

// Throws it when so much cannot be had. Looks at the system only for as much as 64 MiB.
void check_memory_room(i64 needed_bytes, std::string_view what);

}  // namespace mckpt::impl
