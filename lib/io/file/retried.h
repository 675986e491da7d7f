// A system call that a signal breaks off (EINTR) has done nothing and is made again: open(), flock() and
// fsync() wait for disks and servers, and do not restart by themselves everywhere.
#pragma once

#include <cerrno>

namespace mckpt::impl {

template <typename Call>
auto retried(Call&& call) -> decltype(call()) {
  for (;;) {
    auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace mckpt::impl
