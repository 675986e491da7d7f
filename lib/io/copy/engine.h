// The copy engine: carries out a job with threads, each byte of the sources read once, memory bounded
// whatever the size of the model. The files that come out are the same for any number of threads.
#pragma once

#include <atomic>
#include <functional>

#include "core/base/error.h"
#include "io/copy/job.h"
#include "io/copy/worker.h"
#include "io/copy/task_log.h"

namespace mckpt::impl {

struct CopyOptions {
  int threads = 1;
  i64 batch_bytes =
      2 << 20;  // of destinations at a time: they stay in the cache from their read to their write
  i64 memory_bytes = i64{256} << 20;          // of all threads' buffers together
  // Asked before each batch, under a lock: true ends the copy with Error(kInterrupted).
  std::function<bool()> stop{};
  ReadSums* sums = nullptr;                   // receives what is read
  WrittenSums* written = nullptr;             // receives the sums of what is written
  LostValues* lost = nullptr;                 // receives what casts lose
  TaskLog* log = nullptr;                     // what it has as done is left out; what gets done goes there
  // Asked about a task that cannot be planned or carried out, from any thread: true continues without it.
  // Work of other tasks may be repeated. Empty: its error ends the run. Not together with a log.
  std::function<bool(i64 task, const Error&)> leave_out{};
  i64 first_task = 0, end_task = -1;  // this process's share; -1: up to the last
};

CopyCounts run_copy(const CopyJob& job, CopySink& out, const CopyOptions& options);

}  // namespace mckpt::impl
