// Work shared by threads: indexes are handed out one by one, in order.
#pragma once

#include <functional>

#include "core/base/int.h"

namespace mckpt::impl {

// As many threads as there are processors to run on.
int default_threads();

// Calls work(worker) in `threads` threads at once, this one among them, and waits for all of them. If the
// system does not grant that many, fewer do the work. pre: it does not throw.
void run_threads(int threads, const std::function<void(int worker)>& work);

// Calls work(worker, index) for every index in [0, count); at most one call at a time has the same worker,
// which is below `threads`. The first exception stops the rest and is thrown here.
void parallel_for(i64 count, int threads, const std::function<void(int worker, i64 index)>& work);

}  // namespace mckpt::impl
