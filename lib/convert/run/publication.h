// Publication: the frame of every run, around whatever writes the data.
//
//   stage()      rank 0 makes the hidden folder and reserves all files; the others open them
//   ...          every rank writes its share of the data into sink()
//   conclude()   sums and losses of all ranks; rank 0 writes the rest and publishes
#pragma once

#include "convert/run/staged_result.h"
#include "io/copy/observed_sink.h"
#include "io/file/output_files.h"

namespace mckpt::impl {

class Comm;
class LostValues;
class Notes;
class Observer;
class WrittenSums;
struct Conversion;
struct CopyCounts;
struct RunOptions;
struct RunResult;

class Publication {
 public:
  // All outlive this.
  Publication(const Conversion& conversion, const RunOptions& options, Comm& ranks, Observer& observer);

  // Collective. False: an earlier run had published the result, and this one has done what was left.
  bool stage();
  // pre: stage() returned true.
  OutputFiles& files() { return *out_; }
  CopySink& sink() { return *sink_; }
  const std::string& folder() const { return folder_; }

  // Collective. `mine`, `sums` and `lost` are those of this rank. Throws kCastOverflow and kWriteFailed.
  RunResult conclude(const CopyCounts& mine, WrittenSums& sums, LostValues& lost);

 private:
  bool leader() const;  // rank 0
  void publish(WrittenSums& sums);
  Notes find_twins() const;

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
