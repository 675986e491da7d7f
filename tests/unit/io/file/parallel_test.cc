#include "io/file/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// Waits for some seconds at most, and a moment more, in which the error of the other thread reaches
// parallel_for.
void wait_until(const std::atomic<bool>& thrown) {
  for (int ms = 0; ms < 20'000 && !thrown; ms++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

TEST(ParallelFor, CallsEachIndexOnceAndNoWorkerTwiceAtATime) {
  for (int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> calls(1000), in(static_cast<std::size_t>(threads));
    std::atomic<int> wrong = 0;
    parallel_for(1000, threads, [&](int worker, i64 i) {
      wrong += in[worker]++ != 0;
      calls[i]++;
      in[worker]--;
    });
    EXPECT_EQ(wrong, 0);
    for (const std::atomic<int>& n : calls) EXPECT_EQ(n, 1);
  }
}

// A thread with a higher index fails before it.
TEST(ParallelFor, ThrowsTheErrorThatASingleThreadWouldThrow) {
  for (int threads : {1, 2, 3}) {
    std::atomic<bool> later_failed = false;
    i64 told = -1;
    try {
      parallel_for(1000, threads, [&](int, i64 i) {
        if (i == 4 && threads > 1) wait_until(later_failed);
        if (i == 5) later_failed = true;
        if (i == 4 || i == 5) throw Error(Code::kReadFailed, "a part cannot be read").offset(i);
      });
    } catch (const Error& e) {
      told = e.offset();
    }
    EXPECT_EQ(told, 4) << threads;
  }
}

}  // namespace
}  // namespace mckpt::impl
