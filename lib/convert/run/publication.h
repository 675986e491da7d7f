// Publication: the steps of every run around the writing of the data.
//
//   stage()      rank 0 makes the hidden folder and reserves all files; the other ranks open them
//   ...          every rank writes its share of the data into sink()
//   conclude()   sums and losses of all ranks are brought together; rank 0 writes the frame and publishes
//
// Both steps are collective: every rank calls them, in this order. An error on one rank ends the job of all
// ranks.
#pragma once

#include "convert/run/staged_result.h"
#include "io/copy/observed_sink.h"
#include "io/output/output_files.h"

namespace mckpt::impl {

class Comm;
class Error;
class LostValues;
class Observer;
class WrittenSums;
struct Conversion;
struct CopyCounts;
struct RunOptions;
struct RunResult;

// One publication, used once by one thread of each rank; sink() may be used by several threads.
class Publication {
 public:
  // All outlive this.
  Publication(const Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer);

  // Collective; all ranks get the same answer. False: an earlier run published the result, and only the last
  // steps are left to conclude(). Throws what StagedResult and OutputFiles throw.
  bool stage();
  // pre: stage() returned true.
  OutputFiles& files() { return *out_; }
  CopySink& sink() { return *sink_; }
  const std::string& folder() const { return folder_; }

  // Collective. `mine`, `sums` and `lost` are this rank's. Throws kCastOverflow and kWriteFailed.
  RunResult conclude(const CopyCounts& mine, WrittenSums& sums, LostValues& lost);
  // The work ended with this error: decides whether a later run may go on with what is there.
  void failed(const Error& error);

 private:
  bool leader() const;  // rank 0
  void publish(WrittenSums& sums);

  const Conversion& conversion_;
  const RunOptions& options_;
  Comm& ranks_;
  Observer& observer_;
  std::optional<StagedResult> staged_;  // of rank 0
  std::string folder_;
  std::optional<OutputFiles> out_;
  std::optional<ObservedSink> sink_;
};

}  // namespace mckpt::impl
