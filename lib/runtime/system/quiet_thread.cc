// A thread inherits the signal mask of its maker: all signals are blocked while the thread is made, and then
// the maker's mask is set again.
#include "runtime/system/quiet_thread.h"

#include <csignal>
#include <optional>
#include <system_error>

#include "core/base/error.h"

namespace mckpt::impl {

std::thread quiet_thread(std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::optional<std::thread> thread;
  try {
    thread.emplace(std::move(run));
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!thread) throw Error(Code::kRanksFailed, "the system did not start the thread that watches the ranks");
  return std::move(*thread);
}

}  // namespace mckpt::impl
