// The threads of a copy. Each repeats, until no task is left: take the next tasks in order, plan them, carry
// them out in batches, log them.
//
//   tasks     0    1    2    3    4      5    6      (MiB of destinations)     batches of 2 MiB:
//   size     0.5  0.5  0.5  0.5   9     0.5   1      thread A: {0 1 2 3}   thread B: {4} in slices   A: {5 6}
//
// A thread that finds no task left carries out slices of the large tasks of others (io/copy/large_task.h): A
// helps with 4.
//
// Tasks that follow each other write next to each other, so a batch of a thousand small ones becomes a
// handful of large writes. Taking is the only step under the lock; planning is not, because it may read
// headers of the source. The job only estimates sizes when tasks are taken, so a batch is cut again by the
// real sizes. Where a task reads more than it writes, as the scales of a weight do, the estimate is of what
// it reads: so a batch ends soon, and other threads have the next tasks.
//
// After an error, or when `stop` asks for the end, the other threads finish what they took and take no more.
// All tasks before those that failed have been taken by then: of several errors, the one of the first tasks
// is the error of the run, as it is with one thread.
#include "io/copy/engine.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "io/copy/done_tasks.h"
#include "io/copy/job.h"
#include "io/copy/large_task.h"
#include "io/copy/read_sums.h"
#include "io/copy/slices.h"
#include "io/copy/task_log.h"
#include "io/copy/worker.h"
#include "io/file/parallel.h"
#include "io/output/copy_sink.h"
#include "io/store/checksum.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kBatchTasks = 1024;

i64 destination_bytes(const CopyTask& task) {
  i64 bytes = 0;
  for (i32 d = 0; d < task.plan.destination_count(); d++)
    bytes += task.plan.destination(d).items * task.plan.destination(d).item_bytes;
  return bytes;
}

// One call of run_copy: the state that its threads share.
class Run {
 public:
  Run(const CopyJob& job, CopySink& out, const CopyOptions& options)
      : job_(job),
        out_(out),
        options_(options),
        next_(options.first_task),
        end_(options.end_task < 0 ? job.task_count() : options.end_task) {}

  CopyCounts run() {
    run_threads(options_.threads, [this](int) { work(); });
    if (error_) std::rethrow_exception(error_);
    return counts_;
  }

 private:
  void work() {
    CopyWorker worker(job_, out_, {options_.sums, options_.written, options_.lost, options_.log != nullptr});
    std::unique_lock lock(mutex_);
    busy_++;
    lock.unlock();
    std::vector<i64> taken, indexes;
    try {
      std::vector<CopyTask> batch;
      while (take(taken)) {
        i64 bytes = 0;
        for (i64 index : taken) {
          std::optional<CopyTask> task = plan(index);
          if (!task) continue;
          bytes += destination_bytes(*task);
          if (!batch.empty() && bytes > options_.batch_bytes) {
            carry_out_and_log(worker, batch, indexes);
            bytes = destination_bytes(*task);
          }
          batch.push_back(std::move(*task));
          indexes.push_back(index);
        }
        if (!batch.empty()) carry_out_and_log(worker, batch, indexes);
      }
    } catch (...) {
      lock.lock();
      const i64 first = taken.empty() ? next_ : taken[0];
      if (!error_ || first < failed_) error_ = std::current_exception(), failed_ = first;
      lock.unlock();
    }
    lock.lock();
    busy_--;
    changed_.notify_all();
    help(worker, lock);
    counts_ += worker.counts();
  }

  // For a thread without a task: carries out slices of large tasks until no thread has a task.
  void help(CopyWorker& worker, std::unique_lock<std::mutex>& lock) {
    while (!error_ && busy_ > 0) {
      auto large = std::ranges::find_if(large_, [](const auto& t) { return t->has_slices(); });
      if (large == large_.end()) {
        changed_.wait(lock);
        continue;
      }
      std::shared_ptr<LargeTask> task = *large;
      lock.unlock();
      task->carry_out(worker);
      lock.lock();
    }
  }

  // Leaves `batch` and `indexes` empty.
  void carry_out_and_log(CopyWorker& worker, std::vector<CopyTask>& batch, std::vector<i64>& indexes) {
    std::vector<u32> sums(batch.size());
    i64 infinite = carry_out(worker, batch, indexes, sums);
    // A task that made values infinite is repeated by a resumed run, so that the resumed run reports it.
    if (options_.log && infinite == 0) {
      std::vector<DoneTask> done;
      for (std::size_t i = 0; i < batch.size(); i++)
        done.push_back({indexes[i], sums[i], stated_sum(batch[i])});
      options_.log->add(done);
    }
    batch.clear(), indexes.clear();
  }

  // Returns the number of values that became infinite. `sums`: of the tasks, for the log.
  i64 carry_out(CopyWorker& worker, std::span<const CopyTask> batch, std::span<const i64> indexes,
                std::span<u32> sums) {
    i64 before = worker.counts().infinite;
    try {
      if (batch.size() == 1 && destination_bytes(batch[0]) > options_.batch_bytes)
        return carry_out_large(worker, batch[0], sums[0]);
      worker.run_small(batch, sums);
      return worker.counts().infinite - before;
    } catch (const Error& e) {
      if (!options_.leave_out) throw;
      if (batch.size() == 1 && !options_.leave_out(indexes[0], e)) throw;
    }
    // One task of the batch failed: carry out each on its own to find out which.
    for (std::size_t i = 0; batch.size() > 1 && i < batch.size(); i++)
      carry_out(worker, batch.subspan(i, 1), indexes.subspan(i, 1), sums.subspan(i, 1));
    return worker.counts().infinite - before;
  }

  // The task may use half of the thread's share of the memory for one window: a cast needs a second buffer.
  i64 carry_out_large(CopyWorker& worker, const CopyTask& task, u32& sum) {
    i64 most_bytes = options_.memory_bytes / options_.threads / 2;
    auto large = std::make_shared<LargeTask>(task, slices_of(task.plan, options_.batch_bytes, most_bytes));
    std::unique_lock lock(mutex_);
    large_.push_back(large);
    changed_.notify_all();
    lock.unlock();
    large->carry_out(worker);
    lock.lock();
    std::erase(large_, large);
    lock.unlock();
    return large->finish(worker, sum);
  }

  // The task's plan, or nothing if the task is left out.
  std::optional<CopyTask> plan(i64 index) const {
    try {
      CopyTask task = job_.task(index);
      if (options_.sums)
        for (const Checksum& sum : task.sums) options_.sums->expect(sum);
      return task;
    } catch (const Error& e) {
      if (!options_.leave_out || !options_.leave_out(index, e)) throw;
    }
    return std::nullopt;
  }

  // The next tasks in order, without those that the log has as done: as many as fit a batch by the job's
  // estimate, or one that is larger. False: no task is left, or another thread failed.
  bool take(std::vector<i64>& indexes) {
    indexes.clear();
    std::lock_guard lock(mutex_);
    if (error_) return false;
    if (options_.stop && options_.stop())
      throw Error(Code::kInterrupted, "the copy was stopped before it was done");
    for (i64 bytes = 0; next_ < end_ && indexes.size() < kBatchTasks; next_++) {
      if (options_.log && options_.log->is_done(next_)) continue;
      bytes += job_.task_work(next_);
      if (!indexes.empty() && bytes > options_.batch_bytes) break;
      indexes.push_back(next_);
    }
    return !indexes.empty();
  }

  const CopyJob& job_;
  CopySink& out_;
  const CopyOptions& options_;
  std::mutex mutex_;
  std::condition_variable changed_;  // large_ has one more, or busy_ is less
  std::vector<std::shared_ptr<LargeTask>> large_;
  int busy_ = 0;  // threads that have tasks or may still take some
  i64 next_, end_;
  std::exception_ptr error_;
  i64 failed_ = 0;  // the first of the tasks of the error
  CopyCounts counts_;
};

}  // namespace

void CopyJob::refuse_unlike(const Region& region, i64 item) const {
  throw Error(Code::kInternal, cat("item ", item, " of a result is not what the source has beside it"))
      .tensor(tensor_of(region));
}

CopyCounts run_copy(const CopyJob& job, CopySink& out, const CopyOptions& options) {
  job.prepare(options.threads, options.memory_bytes);
  return Run(job, out, options).run();
}

}  // namespace mckpt::impl
