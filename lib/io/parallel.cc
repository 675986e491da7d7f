#include "io/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mckpt {

int default_threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

void parallel_for(i64 count, int threads, const std::function<void(int worker, i64 index)>& work) {
  threads = static_cast<int>(std::min<i64>(threads, count));
  if (threads <= 1) {
    for (i64 i = 0; i < count; i++) work(0, i);
    return;
  }
  std::atomic<i64> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  auto run = [&](int worker) {
    try {
      for (i64 i; (i = next.fetch_add(1)) < count;) work(worker, i);
    } catch (...) {
      next = count;
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (int worker = 1; worker < threads; worker++) pool.emplace_back(run, worker);
  run(0);
  for (std::thread& t : pool) t.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mckpt
