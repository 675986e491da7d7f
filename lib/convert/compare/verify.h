// verify(): whether a checkpoint is complete and sound by itself; or, if another one is named, whether it
// contains what converting that one would write. Findings are values: nothing is printed, and damage is not
// an error.
//
//   auto v = verify("ckpt", {.threads = 8}, observer);
//   v.report.sound();                       no problem was found
//   for (const Finding& f : v.report.findings) ...
//
// The findings can be written as a card (io/card/card.h), and a checkpoint can be verified by such a card.
#pragma once

#include "convert/compare/compare.h"

namespace mckpt::impl {

// Plain values.
struct VerifyOptions {
  int threads = 1;
  std::optional<std::string> against{};  // the checkpoint or model that this one was made of
  CompareOptions compare{};              // how the two are compared; `threads` above replaces its own
  std::vector<std::string> reports{};    // files that get a card, each in the form that its name says
  std::optional<std::string> card{};     // a card: files and digests are compared with it, and nothing else
  bool strict = false;                   // warnings are problems
  std::string command{};                 // for the card: what was asked for, in words
};

// The outcome.
struct Verified {
  VerifyReport report{};
  std::optional<bool> equal{};       // set if `against` is given
  std::optional<bool> as_card{};     // set if `card` is given: nothing on the card changed
  std::vector<Oddities> oddities{};  // of the two sides of a comparison
};

// Throws if there is nothing to check: kNotFound, kReadFailed, kUnknownFormat, kModuleMissing; kInterrupted;
// what compare() throws. In a folder with several checkpoints each is verified by itself
// (VerifyReport::parts), and the report has the checks "below", about all of them, and "beside", about the
// other files. With `card`, the report has the checks of check_card() (io/card/check_card.h). kUsage if
// `card` is given together with `against` or `reports`.
Verified verify(const std::string& path, const VerifyOptions& options, Observer& observer);

}  // namespace mckpt::impl
