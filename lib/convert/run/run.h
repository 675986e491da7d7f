// The executor of all conversions, and the one place that publishes a result. Under several ranks each calls
// it with the same conversion and does its share; rank 0 stages and publishes.
//
//   check_result()   rank 0   may it be written there, is there room?        nothing is written so far
//   run()            rank 0   makes .NAME.mckpt-tmp with all files at their final sizes
//                    all      carry out tasks, sum what is read and written, compare the source's sums
//                    rank 0   headers and objects, side files, .metadata or index, manifest
//                             fsync, rename, tracker, marks removed
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

struct RunOptions {
  int threads = 1;
  i64 memory_bytes = i64{256} << 20;  // of all threads' buffers together
  bool durable = true;                // false: no fsync; for scratch
  bool overwrite = false;             // a result that is there is replaced, once the new one is whole
  bool resume = false;                // go on with what an interrupted run left; not together with overwrite
  bool allow_overflow = false;        // publish also where a cast made finite values infinite
  bool can_overwrite = true;          // false: an error about a result that is there proposes to remove it
};

struct RunResult {
  CopyCounts counts;  // of all ranks
  // What casts lost: items that were finite and became infinite, or were not zero and became zero.
  i64 became_infinite = 0, became_zero = 0;
  std::vector<LostValues::Tensor> overflowed{};
  Notes notes{};  // about the published result
};

// What may be written where beside the result; and the files and folders that it consists of.
OutputRules output_rules(const Conversion& conversion);
std::vector<std::string> results_of(const Conversion& conversion);

// Throws what can be known not to work before anything is written: sources that are not as their manifest
// lists them, a result that is there or is part of the source, too little room.
void check_result(const Conversion& conversion, const RunOptions& options);

// Throws Error: kInterrupted, kWriteFailed, kBadChecksum and what the job throws. After an error the result is
// not there and its beginning stays for a run that resumes, unless the message says that it is published.
RunResult run(Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer);

// What a rank writes of the data, for a result that has no job, or more to do than a job. The sums of
// everything that is written are added to `sums`.
struct DataTarget {
  CopySink& out;
  WrittenSums& sums;
};
using DataWriter = std::function<CopyCounts(const DataTarget& to)>;
RunResult run(const Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer,
              const DataWriter& write);

}  // namespace mckpt::impl
