// The last words when memory ends where no error can be thrown: before main, when libstdc++ has no room for
// the exception itself, and between main's first line and the handlers of main.cc. Without this file the
// program would abort, with a core dump and without a reason.
//
//   operator new fails -> std::terminate -> say_and_end(): error[MC9902] with write(2), exit status 3
//
// The constructor runs before all others (priority 101), allocates nothing, and so works however little
// memory there is.
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>

#include "core/base/error_code.h"

namespace mckpt::impl {
namespace {

// An exception that finds no memory leaves no other trace.
bool memory_is_used_up() {
  void* some = std::malloc(64 << 10);
  std::free(some);
  return some == nullptr;
}

bool is_about_memory() {
  std::exception_ptr cause = std::current_exception();
  if (!cause) return memory_is_used_up();
  try {
    std::rethrow_exception(cause);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

void say_and_end() {
  static constexpr char kWords[] = "error[MC9902]: out of memory\nhelp: more: mckpt explain MC9902\n";
  static_assert(static_cast<int>(Code::kOutOfMemory) == 9902);
  if (!is_about_memory()) std::abort();
  [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, kWords, sizeof kWords - 1);
  ::_exit(static_cast<int>(Exit::kInput));
}

// Ahead of all other initialisation.
__attribute__((constructor(101))) void prepare() { std::set_terminate(say_and_end); }

}  // namespace
}  // namespace mckpt::impl
