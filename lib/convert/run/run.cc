// Writes the data of a result: this rank's share of the tasks, with a log of finished tasks and the sums of
// what is read and written. Tasks are shared by bytes:
//
//   tasks of 60, 10, 10, 20 bytes, 2 ranks:   task t belongs to rank floor(2 * bytes before t / 100)
//                                             0 -> rank 0     60, 70, 80 before -> rank 1
//
// The shares are computed by every rank alike, so that ranks need not talk to each other.
#include "convert/run/run.h"

#include <algorithm>

#include "convert/plan/target.h"
#include "convert/run/publication.h"
#include "core/base/error.h"
#include "io/copy/done_tasks.h"
#include "io/copy/engine.h"
#include "io/copy/job.h"
#include "io/copy/read_sums.h"
#include "io/copy/task_log.h"
#include "io/copy/written_sums.h"
#include "io/store/checksum.h"
#include "io/store/store.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// A range of tasks, [first, end).
struct Share {
  i64 first = 0, end = 0;  // tasks
};

// The tasks whose first byte is in this rank's part of all that is read or written; they follow each other. A
// share may be empty.
Share share_of(const CopyJob& job, i64 rank, i64 ranks) {
  i64 total = 0;
  for (i64 t = 0; t < job.task_count(); t++) total += job.task_work(t);
  Share share{job.task_count(), job.task_count()};
  i64 before = 0;
  for (i64 t = 0; t < job.task_count(); t++) {
    // The rank in whose part the task begins.
    i64 owner = total > 0 ? static_cast<i64>(static_cast<__int128>(before) * ranks / total) : 0;
    if (owner >= rank && share.first == job.task_count()) share.first = t;
    if (owner > rank) {
      share.end = t;
      break;
    }
    before += job.task_work(t);
  }
  share.first = std::min(share.first, share.end);
  return share;
}

// Carries out the tasks of one rank, once.
class Copy {
 public:
  Copy(Conversion& conversion, const RunOptions& options, Observer& observer)
      : c_(conversion), options_(options), observer_(observer) {}

  CopyCounts carry_out(Publication& result, Share share, WrittenSums& written, LostValues& lost) {
    CopyOptions how{.threads = options_.threads, .memory_bytes = options_.memory_bytes};
    how.stop = [this] { return observer_.stop(); };
    how.sums = c_.sums.get(), how.lost = &lost;
    how.first_task = share.first, how.end_task = share.end;
    std::optional<TaskLog> log;
    if (!c_.single_file || c_.target->has_sums_of_data()) how.written = &written;
    if (!c_.single_file) {
      if (!c_.job_of_rank)
        log.emplace(StagedFolder::log_path(result.folder()), share.first, share.end, result.files(),
                    options_.durable);
    }
    if (log) judge_done(*log, share, result.folder(), written);
    // A single file may take data from any record of its source, so all records are compared with their sums.
    if (c_.sums && c_.single_file) c_.store->each_checksum([&](const Checksum& c) { c_.sums->expect(c); });
    how.log = log ? &*log : nullptr;
    try {
      CopyCounts counts = run_copy(*c_.job, result.sink(), how);
      check_sums();
      return counts;
    } catch (const Error& e) {
      if (log && e.code() == Code::kInterrupted) log->flush();
      throw;
    }
  }

 private:
  // The tasks that an interrupted run finished: their written data are read again and compared with the sums
  // in the log, and a task whose data are others is done again. The records from which they were made are
  // compared with their checksums like all others, after these were compared with the checksums of the first
  // run. The tasks count as done when they have been read.
  void judge_done(TaskLog& log, Share share, const std::string& folder, WrittenSums& written) {
    for (i64 t = share.first; t < share.end; t++) {
      if (!log.is_done(t)) continue;
      const CopyTask done = c_.job->task(t);
      const DoneTask logged = log.done(t);
      if (stated_sum(done) != logged.stated) refuse_other_source();
      if (!is_as_written(*c_.job, done, logged, folder, c_.files, written)) {
        log.forget(t);
        check_stop(observer_);
        continue;
      }
      for (const Checksum& sum : done.sums)
        if (c_.sums) c_.sums->expect(sum);
      observer_.done(c_.job->task_bytes(t));
      check_stop(observer_);
    }
  }

  [[noreturn]] void refuse_other_source() const {
    throw Error(
        Code::kOtherPlan,
        "an interrupted run left an unfinished output of this name, which it made from another source: the checksums in the source are others")
        .file(c_.path)
        .help(cat("to throw the unfinished output away and begin anew, ", folder_staging(c_, options_).anew));
  }

  void check_sums() {
    if (!c_.sums) return;
    c_.sums->check(*c_.store, [&] {
      observer_.done(0);
      check_stop(observer_);
    });
  }

  Conversion& c_;
  const RunOptions& options_;
  Observer& observer_;
};

i64 total_bytes(const std::vector<OutputFile>& files) {
  i64 bytes = 0;
  for (const OutputFile& f : files) bytes += f.bytes;
  return bytes;
}

// Stages the result, lets `write` write the data of this rank unless an earlier run published them, and
// publishes.
template <typename Write>
RunResult write_and_publish(const Conversion& conversion, const RunOptions& options, Comm& ranks,
                            Observer& observer, Write&& write) {
  Publication result(conversion, options, ranks, observer);
  WrittenSums written;
  LostValues lost;
  CopyCounts counts;
  try {
    if (result.stage()) {
      observer.begin("write", total_bytes(conversion.files) / ranks.size());
      counts = write(result, written, lost);
    }
    return result.conclude(counts, written, lost);
  } catch (const Error& e) {
    result.failed(e);
    throw;
  }
}

}  // namespace

RunResult run(Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer) {
  return write_and_publish(
      conversion, options, ranks, observer, [&](Publication& result, WrittenSums& written, LostValues& lost) {
        Share share = conversion.job_of_rank ? Share{0, conversion.job->task_count()}
                                             : share_of(*conversion.job, ranks.rank(), ranks.size());
        return Copy(conversion, options, observer).carry_out(result, share, written, lost);
      });
}

RunResult run(const Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer,
              const DataWriter& write) {
  return write_and_publish(conversion, options, ranks, observer,
                           [&](Publication& result, WrittenSums& written, LostValues&) {
                             return write({result.sink(), written});
                           });
}

}  // namespace mckpt::impl
