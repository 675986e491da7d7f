// Starts threads, hands out indexes from an atomic counter, and throws an error after all threads have ended.
// An error sets the counter to its end, so that the other threads finish the index that they have and then
// stop. Every index below the one that failed has been handed out by then, so the error of the lowest index
// is the same for any number of threads.
#include "io/file/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace mckpt::impl {

void check_threads(i64 threads) {
  constexpr i64 kMost = 1024;
  if (threads < 1 || threads > kMost)
    throw Error(Code::kUsage, "`threads`: not a possible number of threads")
        .expected(cat("1 to ", kMost))
        .found(threads);
}

int default_threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

void run_threads(int threads, const std::function<void(int worker)>& work) {
  std::vector<std::jthread> others;
  try {
    for (int worker = 1; worker < threads; worker++) others.emplace_back(work, worker);
  } catch (const std::system_error&) {
  }
  work(0);
}

void parallel_for(i64 count, int threads, const std::function<void(int worker, i64 index)>& work) {
  threads = static_cast<int>(std::min<i64>(threads, count));
  if (threads <= 1) {
    for (i64 i = 0; i < count; i++) work(0, i);
    return;
  }
  std::atomic<i64> next = 0;
  std::exception_ptr failure;
  i64 failed = count;
  std::mutex mutex;
  run_threads(threads, [&](int worker) {
    i64 i = 0;
    try {
      while ((i = next.fetch_add(1)) < count) work(worker, i);
    } catch (...) {
      next = count;
      std::lock_guard lock(mutex);
      if (i < failed) failed = i, failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mckpt::impl
