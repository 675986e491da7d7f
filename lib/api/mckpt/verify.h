// mckpt::verify() and compare(): whether a checkpoint is complete and sound, and whether it contains what
// converting another one would write.
//
//   mckpt::Report r = mckpt::compare("ckpt", "Qwen3-0.6B");
//   if (!r.equal) for (const mckpt::Difference& d : r.differences) ...
//
// Faults are values in the report. An Error is thrown only if there is nothing to check, or if the
// system fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mckpt/check_options.h"
#include "mckpt/checkpoint.h"
#include "mckpt/observer.h"

namespace mckpt {

// One kind of check, and how it ended.
struct Check {
  std::string name{};    // "coverage"
  std::string status{};  // none (nothing to check), pass, warn, fail
  std::int64_t count = 0;
  std::string unit{};       // of what `count` counts: "tensors"
  std::int64_t unseen = 0;  // how many could not be looked at
  std::string note{};       // what was left out on purpose, and why
};

// How two sides differ in one tensor or object.
struct Difference {
  std::string tensor{}, file{};
  std::string at{};  // the first place: "[3, 2]" in a tensor, ".lr" in an object
  std::string expected{}, found{};
  std::int64_t items = -1;          // how many items differ; -1 for an object
  std::optional<double> largest{};  // the largest difference between two numbers
};

struct Report {
  // No finding is a problem. Only what was read counts: see `unread`. A comparison does not judge values,
  // such as NaN on both sides; with a card it is false.
  bool sound = false;
  std::optional<bool> equal{};  // of a comparison: everything was compared and is equal
  // In a comparison: how many have another type, shape or value
  std::optional<std::int64_t> differing_tensors{};
  // In a comparison: tensors that were compared after a cast to a type that does not hold all values of the
  // source's. Where there are any, `equal` is about the rounded values.
  std::optional<std::int64_t> rounded{};
  // With VerifyOptions::card: true if all files are as the card says. Nothing else was checked
  std::optional<bool> as_card{};
  std::vector<Check> checks{};
  std::vector<Finding> findings{};
  std::vector<Difference> differences{};
  std::vector<std::string> unread{};        // files and folders that no check looked at
  std::vector<Finding> oddities{};          // about the two sides of a comparison: odd, but nothing is lost
  std::vector<std::string> unread_paths{};  // the paths of `unread`, in the same order, without the reasons
};

// The checkpoint by itself: files, sizes, headers, coverage, stored sums, NaN, equal experts. Reads all data.
MCKPT_API Report verify(const std::string& path, const VerifyOptions& options = {},
                        Observer* observer = nullptr);
// Whether `tested` contains, bit for bit, what converting `source` would write. The checks of verify() are
// not made: a NaN that both sides have is equal.
MCKPT_API Report compare(const std::string& tested, const std::string& source,
                         const CompareOptions& options = {}, Observer* observer = nullptr);

}  // namespace mckpt
