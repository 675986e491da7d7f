// Collectors of findings. Findings bounds their number: a damaged folder can have a hundred thousand of one
// kind, and the first of each kind are enough to see what happened. PlacedFindings puts what several threads
// find in order, so that the same findings come first for any number of threads.
//
//   60 times problem[MC1305], twice warning[MC1009]  ->  50 x MC1305, "and 10 more of this kind", 2 x MC1009
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "io/store/store.h"

namespace mckpt::impl {

// For one thread. A kind is a code, with problems and warnings apart.
class Findings {
 public:
  static constexpr i64 kMostOfOneCode = 50;

  void add(Finding finding) {
    if (counts_[{finding.code, finding.warning}]++ < kMostOfOneCode) list_.push_back(std::move(finding));
  }

  // Adds a finding about a tensor of the store, or about no tensor if `tensor` is negative.
  void add(const Store& store, Code code, i64 tensor, std::string message, const char* help = "",
           bool warning = false) {
    add({.code = code,
         .tensor = tensor < 0 ? std::string() : std::string(store.name(tensor)),
         .message = std::move(message),
         .help = help,
         .warning = warning});
  }

  // The findings so far, and one more for every kind of which some were left out. Empties the collector.
  std::vector<Finding> take() {
    for (auto [kind, count] : counts_) {
      if (count <= kMostOfOneCode) continue;
      list_.push_back({.code = kind.first,
                       .message = cat("and ", count - kMostOfOneCode, " more of this kind"),
                       .warning = kind.second});
    }
    counts_.clear();
    return std::exchange(list_, {});
  }

 private:
  std::vector<Finding> list_;
  std::map<std::pair<Code, bool>, i64> counts_;
};

// The findings of threads that share a list of places, such as tensors, among them. They come out in the
// order of the places, whichever thread was first.
class PlacedFindings {
 public:
  // Thread-safe. Findings of one place stay in the order of the calls.
  void add(i64 place, Finding finding) {
    std::lock_guard lock(mutex_);
    list_.push_back({place, std::move(finding)});
  }

  std::vector<Finding> take() {
    std::ranges::stable_sort(list_, {}, &Placed::place);
    std::vector<Finding> out;
    for (Placed& p : list_) out.push_back(std::move(p.finding));
    list_.clear();
    return out;
  }

 private:
  struct Placed {
    i64 place;
    Finding finding;
  };
  std::mutex mutex_;
  std::vector<Placed> list_;
};

}  // namespace mckpt::impl
