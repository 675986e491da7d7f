// Preloaded into a program, this lets allocations fail. FAULTY_MEMORY says which:
//
//   FAULTY_MEMORY=7      the 7th allocation of the process fails, once
//   FAULTY_MEMORY=7+     it fails, and so does every later one
//
// The C library's own allocations count, too. FAULTY_MEMORY_LOG=FILE: the number of allocations is written
// there when the process ends by itself.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

std::atomic<long> allocations = 0, when = -1;  // -1: not read yet; 0: none fails
std::atomic<bool> stays = false;

// Reading the environment allocates nothing.
void read_wish() {
  long n = 0;
  if (const char* text = std::getenv("FAULTY_MEMORY")) {
    for (; *text >= '0' && *text <= '9'; text++) n = 10 * n + (*text - '0');
    stays = *text == '+';
  }
  when = n;
}

bool fails() {
  if (when < 0) read_wish();
  long call = ++allocations;
  if (when == 0 || (stays ? call < when : call != when)) return false;
  errno = ENOMEM;
  return true;
}

struct AtTheEnd {
  ~AtTheEnd() {
    const char* path = std::getenv("FAULTY_MEMORY_LOG");
    if (!path) return;
    char digits[24];
    char* at = digits + sizeof digits;
    *--at = '\n';
    for (long n = allocations; n > 0; n /= 10) *--at = static_cast<char>('0' + n % 10);
    int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return;
    [[maybe_unused]] ssize_t n = ::write(fd, at, static_cast<size_t>(digits + sizeof digits - at));
    ::close(fd);
  }
} at_the_end;

}  // namespace

extern "C" {

void* malloc(size_t n) { return fails() ? nullptr : __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return fails() ? nullptr : __libc_calloc(n, size); }
void* realloc(void* old, size_t n) { return fails() ? nullptr : __libc_realloc(old, n); }
void* memalign(size_t alignment, size_t n) { return fails() ? nullptr : __libc_memalign(alignment, n); }
void* aligned_alloc(size_t alignment, size_t n) { return fails() ? nullptr : __libc_memalign(alignment, n); }
int posix_memalign(void** to, size_t alignment, size_t n) {
  if (fails()) return ENOMEM;
  *to = __libc_memalign(alignment, n);
  return *to ? 0 : ENOMEM;
}
}
