// The failures of threads that share the units of tensors among them, the same for any number of threads.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "core/base/int.h"
#include "io/store/finding.h"

namespace mckpt::impl {

// For each tensor, the failure of its first unit that cannot be read. A later unit may fail before it: so
// only units behind a failed one are skipped, and the same failure is reported for any number of threads.
class FirstFailures {
 public:
  bool has_one_before(i64 tensor, i64 unit) {
    std::lock_guard lock(mutex_);
    auto it = first_.find(tensor);
    return it != first_.end() && it->second.first < unit;
  }
  void add(i64 tensor, i64 unit, Finding finding) {
    std::lock_guard lock(mutex_);
    auto [it, added] = first_.try_emplace(tensor, unit, finding);
    if (!added && unit < it->second.first) it->second = {unit, std::move(finding)};
  }
  // The failures in the order of the tensors. pre: no thread adds any more.
  std::map<i64, std::pair<i64, Finding>>& all() { return first_; }

 private:
  std::mutex mutex_;
  std::map<i64, std::pair<i64, Finding>> first_;
};

}  // namespace mckpt::impl
