// The handler sets two atomics and restores the default, so that a second signal ends the program.
#include "tools/process/interrupt.h"

#include <csignal>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

std::atomic<bool> stop = false;
std::atomic<int> signal_that_stopped = SIGINT;
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);  // a handler sets them

}  // namespace

const std::atomic<bool>* stop_flag() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      if (!stop) signal_that_stopped = signal;
      stop = true;
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction before {};
      // nohup and shells that start a job in the background have them ignored.
      if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(signal, &action, nullptr);
    }
    return true;
  }();
  (void)installed;
  return &stop;
}

int interrupted_status() { return 128 + signal_that_stopped; }

void check_stop() {
  if (*stop_flag()) throw Error(Code::kInterrupted, "the command was stopped before it was done");
}

}  // namespace mckpt::impl
