// Collects findings. A damaged folder can hold a hundred thousand of a kind; the first of each kind are kept,
// the rest counted.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "io/store.h"

namespace mckpt {

class Findings {
 public:
  static constexpr i64 kMostOfOneCode = 50;

  void add(Finding finding) {
    if (counts_[{finding.code, finding.warning}]++ < kMostOfOneCode) list_.push_back(std::move(finding));
  }

  // Of one of the store's tensors, or of none where `tensor` is negative.
  void add(const Store& store, Code code, i64 tensor, std::string message, const char* help = "",
           bool warning = false) {
    add({.code = code,
         .tensor = tensor < 0 ? std::string() : std::string(store.name(tensor)),
         .message = std::move(message),
         .help = help,
         .warning = warning});
  }

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

}  // namespace mckpt
