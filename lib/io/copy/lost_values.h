// LostValues: what the casts of a copy lost, gathered from all its threads: which tensors have values that
// were finite and are infinite now, and how many values became zero.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/items/cast_losses.h"

namespace mckpt::impl {

class LostValues {
 public:
  struct Tensor {
    std::string name;
    i64 infinite = 0;  // items
  };

  void add(const std::string& tensor, CastLosses losses);  // thread-safe

  // pre: nobody adds any more. Most first, of equal ones by name.
  std::vector<Tensor> tensors() const;
  CastLosses total() const { return total_; }

 private:
  std::mutex mutex_;
  std::map<std::string, i64> infinite_;
  CastLosses total_;
};

}  // namespace mckpt::impl
