// The copy engine: carries out a job with threads. Each byte of the sources is read once (io/copy/slices.h
// has the exception), memory is bounded whatever the size of the model, and the files that come out are the
// same for any number of threads.
//
//   CopyJob  --tasks-->  run_copy  --batches-->  a CopyWorker for each thread  --bytes-->  CopySink
//                           |                        |
//                        TaskLog, for --resume    ReadSums, WrittenSums, LostValues
//
// A task is carried out completely by one thread. Small neighbouring tasks are carried out together (a
// batch), a task that is larger than a batch in slices (io/copy/slices.h). Between batches the engine asks
// `stop`.
#pragma once

#include <atomic>
#include <functional>

#include "core/base/int.h"
#include "io/copy/counts.h"

namespace mckpt::impl {

class CopyJob;
class CopySink;
class Error;
class LostValues;
class ReadSums;
class TaskLog;
class WrittenSums;

// How a job is carried out, and what receives what the copy sees. Pointers may be null; what they point to
// outlives the run and is used from all threads.
struct CopyOptions {
  int threads = 1;
  i64 batch_bytes =
      2 << 20;  // of destinations at a time: they stay in the cache from their read to their write;
                // and roughly of what is read at a time
  i64 memory_bytes = i64{256} << 20;  // of all threads' buffers together
  // Asked before each batch, under a lock: true ends the copy with Error(kInterrupted).
  std::function<bool()> stop{};
  ReadSums* sums = nullptr;        // receives what is read
  WrittenSums* written = nullptr;  // receives the sums of what is written
  LostValues* lost = nullptr;      // receives what casts lose
  TaskLog* log = nullptr;          // tasks that it has as done are skipped; new ones are added
  // Asked from any thread about a task that cannot be planned or carried out: true continues without the
  // task. The other tasks of its batch may then be carried out twice, and the sink sees their bytes twice.
  // Empty: the error ends the run. Not together with a log.
  std::function<bool(i64 task, const Error&)> leave_out{};
  i64 first_task = 0, end_task = -1;  // this process's share; -1: up to the last
};

// Carries out the tasks [first_task, end_task) and returns what was counted. Throws, when all threads have
// ended, the error of the first tasks that failed, which is the same for any number of threads: kInterrupted
// if `stop` asked for the end, else what the job, the sources and the sink throw.
CopyCounts run_copy(const CopyJob& job, CopySink& out, const CopyOptions& options);

}  // namespace mckpt::impl
