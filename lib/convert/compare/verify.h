// verify(): whether a checkpoint is whole and sound by itself and, where another one is named, whether it
// holds what converting that one would write. Findings are values: nothing is printed, and damage is not an
// error.
//
//   auto v = verify("ckpt", {.threads = 8}, observer);
//   v.report.sound();                       no problem was found
//   for (const Finding& f : v.report.findings) ...
#pragma once

#include "convert/compare/compare.h"

namespace mckpt::impl {

struct VerifyOptions {
  int threads = 1;
  std::optional<std::string> against{};  // what the checkpoint was made of
  CompareOptions compare{};              // how; its threads are those above
};

struct Verified {
  VerifyReport report{};
  std::optional<bool> equal{};       // where two sides were compared
  std::vector<Oddities> oddities{};  // of these
};

// Throws what cannot be judged: kNotFound, kReadFailed, a format that is not known; kInterrupted; what
// compare() throws. A folder that is not a checkpoint but has some in it is verified by these.
Verified verify(const std::string& path, const VerifyOptions& options, Observer& observer);

}  // namespace mckpt::impl
