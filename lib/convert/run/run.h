// The executor of all conversions, and the one place that publishes a result. Under several ranks every rank
// calls the functions with the same conversion and does its share; rank 0 stages and publishes.
//
//   check_result()   rank 0   may the result be written there, is there room?       nothing is written so far
//   run()            rank 0   makes .NAME.mckpt-tmp with all files at their final sizes
//                    all      carry out tasks, sum what is read and written, compare the source's sums
//                    rank 0   headers and objects, side files, .metadata or index, manifest
//                             fsync, rename, tracker, marks removed
//
// Until the rename the earlier result, if there is one, is untouched; after it a reader finds the whole new
// result. With `n` ranks each rank carries out neighbouring tasks of about 1/n of the bytes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/base/notes.h"
#include "io/copy/counts.h"
#include "io/copy/lost_values.h"

namespace mckpt::impl {

class Comm;
class CopySink;
class Observer;
class OutputRules;
class WrittenSums;
struct Conversion;

// Plain values, equal on all ranks.
struct RunOptions {
  int threads = 1;
  i64 memory_bytes = i64{256} << 20;  // of all threads' buffers together
  bool durable = true;                // false: no fsync; for scratch
  // An existing result is replaced, once the new one is complete, and so is what another conversion left
  // unfinished.
  bool overwrite = false;
  // An interrupted run of the same conversion is continued in any case. With `resume` also where
  // that run was to replace a result. Not together with overwrite.
  bool resume = false;
  bool allow_overflow = false;  // publish although a cast made finite values infinite
  bool can_overwrite = true;    // false: an error about an existing result proposes to remove it
};

// The outcome of a finished run, equal on all ranks except `notes` and `resumed`, which rank 0 has.
struct RunResult {
  // The remains of an interrupted run: nothing, an unfinished result, or one that was published but for its
  // last steps.
  enum class Resumed { kNothing, kUnfinished, kPublished };

  Resumed resumed = Resumed::kNothing;
  CopyCounts counts;  // of all ranks
  // Values that casts lost: items that were finite and became infinite, or were not zero and became zero.
  i64 became_infinite = 0, became_zero = 0;
  std::vector<LostValues::Tensor> overflowed{};
  Notes notes{};  // about the published result
};

// The rules by which the place of the result is judged: it must not be part of a source.
OutputRules output_rules(const Conversion& conversion);
// The files and folders that publishing makes or replaces: the result and the tracker.
std::vector<std::string> results_of(const Conversion& conversion);

// Throws if the run is known to fail before anything is written: sources that are not as their manifest lists
// them, a result that exists or is part of the source, too little room. Called by rank 0 for all ranks.
void check_result(const Conversion& conversion, const RunOptions& options);

// Collective: every rank calls it. Throws Error: kInterrupted, kWriteFailed, kBadChecksum, kCastOverflow and
// what the job throws. After an error there is no result, and the unfinished folder remains for the next run
// of the same conversion, unless the message says that the result is published. After an error of the source
// the next run removes it.
RunResult run(Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer);

// The place for the data that a rank writes by itself, for a result whose data do not come from a job alone.
// The writer adds the sums of everything that it writes to `sums`.
struct DataTarget {
  CopySink& out;
  WrittenSums& sums;
};
using DataWriter = std::function<CopyCounts(const DataTarget& to)>;
RunResult run(const Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer,
              const DataWriter& write);

}  // namespace mckpt::impl
