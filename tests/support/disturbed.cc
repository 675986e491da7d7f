// Preloaded into a program, this disturbs the order in which its threads and ranks come to what they share:
// it lets them wait at random where they begin, lock, unlock, read and write.
//
//   DISTURBED=7          the seed: another one is another order
//   DISTURBED=7:400      no wait is longer than 400 microseconds (else 1,000)
//
// A thread, or a rank with all its threads, may be a slow one, which waits ten times as often. No thread
// waits longer than 80 ms in all. Ranks of an mpirun have seeds of their own, and begin at other moments.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::uint64_t kMostInAll_us = 80'000;

// The seed of this process, and the longest wait; 0: nothing is disturbed.
struct Setting {
  std::uint64_t seed = 0, most_us = 0;
  bool slow_rank = false;
};
Setting setting;
std::atomic<std::uint64_t> threads = 0;

std::uint64_t next(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

struct Thread {
  std::uint64_t state = 0, waited_us = 0;
  bool known = false, slow = false;
};
thread_local Thread self __attribute__((tls_model("initial-exec")));

void wait_at_random() {
  if (setting.most_us == 0) return;
  if (!self.known) {
    self.known = true;
    self.state = setting.seed + 1000003 * threads++;
    self.slow = setting.slow_rank || next(self.state) % 3 == 0;
  }
  const std::uint64_t dice = next(self.state) % 1000;
  if (dice < 50) sched_yield();
  if (dice < (self.slow ? 900U : 991U)) return;
  const std::uint64_t us = next(self.state) % setting.most_us;
  if ((self.waited_us += us) > kMostInAll_us) return;
  const int before = errno;
  timespec wait{0, static_cast<long>(us * 1000)};
  nanosleep(&wait, nullptr);
  errno = before;
}

template <typename Fn>
Fn* real(std::atomic<Fn*>& known, const char* name) {
  Fn* found = known.load(std::memory_order_acquire);
  if (!found) known = found = reinterpret_cast<Fn*>(dlsym(RTLD_NEXT, name));
  return found;
}

std::atomic<int (*)(pthread_mutex_t*)> real_lock, real_unlock;
std::atomic<ssize_t (*)(int, void*, size_t, off_t)> real_pread;
std::atomic<ssize_t (*)(int, const void*, size_t, off_t)> real_pwrite;
using Begin = void*(void*);
std::atomic<int (*)(pthread_t*, const pthread_attr_t*, Begin*, void*)> real_create;

struct Started {
  Begin* begin;
  void* with;
};
void* begin_late(void* started) {
  const Started what = *static_cast<Started*>(started);
  std::free(started);
  for (int i = 0; i < 8; i++) wait_at_random();
  return what.begin(what.with);
}

// Everything is looked up before any thread needs it: dlsym() may lock.
__attribute__((constructor)) void set_up() {
  real(real_lock, "pthread_mutex_lock"), real(real_unlock, "pthread_mutex_unlock");
  real(real_pread, "pread"), real(real_pwrite, "pwrite"), real(real_create, "pthread_create");
  const char *text = std::getenv("DISTURBED"), *rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (!text) return;
  char* rest = nullptr;
  Setting mine;
  mine.seed = std::strtoull(text, &rest, 10) * 7919 + (rank ? std::strtoull(rank, nullptr, 10) + 1 : 0);
  mine.slow_rank = rank && next(mine.seed) % 3 == 0;
  mine.most_us = rest && *rest == ':' ? std::strtoull(rest + 1, nullptr, 10) : 1000;
  setting = mine;
  if (rank) usleep(static_cast<useconds_t>(next(mine.seed) % 40'000));
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  wait_at_random();
  return real(real_lock, "pthread_mutex_lock")(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int status = real(real_unlock, "pthread_mutex_unlock")(mutex);
  wait_at_random();
  return status;
}

ssize_t pread(int fd, void* data, size_t n, off_t at) {
  wait_at_random();
  return real(real_pread, "pread")(fd, data, n, at);
}

ssize_t pwrite(int fd, const void* data, size_t n, off_t at) {
  wait_at_random();
  return real(real_pwrite, "pwrite")(fd, data, n, at);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* how, Begin* begin, void* with) {
  auto* started = static_cast<Started*>(std::malloc(sizeof(Started)));
  if (!started) return real(real_create, "pthread_create")(thread, how, begin, with);
  *started = {begin, with};
  const int status = real(real_create, "pthread_create")(thread, how, &begin_late, started);
  if (status != 0) std::free(started);
  return status;
}

}  // extern "C"
