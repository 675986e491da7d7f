// Threads for work that is a list of independent parts. Indexes are handed out one by one, in order, so that
// threads that get small parts take more of them:
//
//   parallel_for(tensors, threads, [&](int worker, i64 t) { digests[t] = digest(readers[worker], t); });
//
// `worker` selects what a call may use alone, such as a reader and its buffers. Threads are started for each
// call of these functions and have ended when it returns.
#pragma once

#include <functional>

#include "core/base/int.h"

namespace mckpt::impl {

// As many threads as there are processors to run on.
int default_threads();
// Throws kUsage unless the number is one that a user may ask for: 1 to 1024.
void check_threads(i64 threads);

// Calls work(worker) in `threads` threads at once, of which the caller's is worker 0, and waits for all of
// them. If the system grants fewer threads, work() is called fewer times. pre: work() does not throw.
void run_threads(int threads, const std::function<void(int worker)>& work);

// Calls work(worker, index) for every index in [0, count); at most one call at a time has the same worker,
// which is below `threads`. After an exception no further index is handed out; when all threads have ended,
// the exception of the lowest index is thrown, which is the one that a single thread would throw.
void parallel_for(i64 count, int threads, const std::function<void(int worker, i64 index)>& work);

}  // namespace mckpt::impl
