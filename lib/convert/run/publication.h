// Publication: the frame of every run, around whatever writes the data.
//
//   stage()      rank 0 makes the hidden folder and reserves all files; the others open them
//   ...          every rank writes its share of the data into sink()
//   conclude()   sums and losses of all ranks; rank 0 writes the rest and publishes
#pragma once

#include "convert/run/staged_result.h"

namespace mckpt {

// Hands on what is written, counts it for the observer, and ends the run where that is wanted: a single task
// may be gigabytes.
class ObservedSink final : public CopySink {
 public:
  ObservedSink(CopySink& to, Observer& observer) : to_(to), observer_(observer) {}
  void write(i32 file, i64 offset, std::span<const u8> bytes) override;

 private:
  CopySink& to_;
  Observer& observer_;
};

// Throws kInterrupted where the observer asks for it.
void check_stop(Observer& observer);

class Publication {
 public:
  // All outlive this.
  Publication(const ConversionPlan& conversion, const RunOptions& options, Comm& ranks, Observer& observer);

  // Collective. False: an earlier run had published the result, and this one has done what was left.
  bool stage();
  // pre: stage() returned true.
  OutputFiles& files() { return *out_; }
  CopySink& sink() { return *sink_; }
  const std::string& folder() const { return folder_; }

  // Collective. `mine`, `sums` and `lost` are those of this rank. Throws kCastOverflow and kWriteFailed.
  RunResult conclude(const CopyCounts& mine, WrittenSums& sums, LostValues& lost);

 private:
  bool leader() const { return ranks_.rank() == 0; }
  void publish(WrittenSums& sums);
  Notes find_twins() const;

  const ConversionPlan& conversion_;
  const RunOptions& options_;
  Comm& ranks_;
  Observer& observer_;
  std::optional<StagedResult> staged_;  // of rank 0
  std::string folder_;
  std::optional<OutputFiles> out_;
  std::optional<ObservedSink> sink_;
};

}  // namespace mckpt
