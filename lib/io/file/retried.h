// Repeats a system call that a signal interrupted (EINTR): such a call has done nothing. open(), flock() and
// fsync() wait for disks and servers, and not every system restarts them by itself.
//
//   int fd = retried([&] { return ::open(path, O_RDONLY); });      -1 and errno for all errors but EINTR
#pragma once

#include <cerrno>

namespace mckpt::impl {

// Returns what the last call returned; errno is the last call's.
template <typename Call>
auto retried(Call&& call) -> decltype(call()) {
  for (;;) {
    auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace mckpt::impl
