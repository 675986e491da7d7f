// LostValues: what the casts of a copy lost, gathered from all its threads: which tensors have values that
// were finite and are infinite now, and how many values became zero. A conversion reports the numbers, and is
// not published if values became infinite, unless the user allows that.
//
//   float32 70000.0 -> float16 inf: infinite            float32 1e-9 -> float16 0: zero
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/items/cast_losses.h"

namespace mckpt::impl {

// Memory: one entry for each tensor with infinite values; zeros are only counted.
class LostValues {
 public:
  struct Tensor {
    std::string name;
    i64 infinite = 0;  // items
  };

  void add(const std::string& tensor, CastLosses losses);  // thread-safe

  // Tensors with most infinite values first, equal ones by name. pre for both: the copy has ended.
  std::vector<Tensor> tensors() const;
  CastLosses total() const { return total_; }

 private:
  std::mutex mutex_;
  std::map<std::string, i64> infinite_;
  CastLosses total_;
};

}  // namespace mckpt::impl
