// verify(): whether a checkpoint is complete and sound by itself; or, if another one is named, whether it
// contains what converting that one would write. Findings are values: nothing is printed, and damage is not
// an error.
//
//   auto v = verify("ckpt", {.threads = 8}, observer);
//   v.report.sound();                       no problem was found
//   for (const Finding& f : v.report.findings) ...
#pragma once

#include "convert/compare/compare.h"

namespace mckpt::impl {

// Plain values.
struct VerifyOptions {
  int threads = 1;
  std::optional<std::string> against{};  // the checkpoint or model that this one was made of
  CompareOptions compare{};              // how the two are compared; `threads` above replaces its own
};

// The outcome.
struct Verified {
  VerifyReport report{};
  std::optional<bool> equal{};       // set if `against` is given
  std::vector<Oddities> oddities{};  // of the two sides of a comparison
};

// Throws if there is nothing to check: kNotFound, kReadFailed, kUnknownFormat, kModuleMissing; kInterrupted;
// what compare() throws. In a folder with several checkpoints each is verified by itself (VerifyReport::parts), and the
// report has the checks "below", about all of them, and "beside", about the other files.
Verified verify(const std::string& path, const VerifyOptions& options, Observer& observer);

}  // namespace mckpt::impl
