// Findings collects findings. A damaged folder can have a hundred thousand of one kind: the first of each
// kind are kept and the rest are counted. What threads find is put in order first, so that the same ones are
// kept for any number of threads.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/base/text.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class Store;

class Findings {
 public:
  static constexpr i64 kMostOfOneCode = 50;

  void add(Finding finding) {
    if (counts_[{finding.code, finding.warning}]++ < kMostOfOneCode) list_.push_back(std::move(finding));
  }

  // Of one of the store's tensors, or of none where `tensor` is negative.
  void add(const Store& store, Code code, i64 tensor, std::string message, const char* help = "",
           bool warning = false);

  // What was collected, with a line for every kind of which some were left out.
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

// What threads find that share places out among them: in the order of the places, whichever thread was first.
class PlacedFindings {
 public:
  // Thread-safe. Those of one place stay in the order in which they came.
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
