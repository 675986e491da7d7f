// Adds up, for each tensor, the values that casts lost. A tensor that is cast in several pieces, by several
// threads, is added to several times.
#include "io/copy/lost_values.h"

#include <algorithm>

namespace mckpt::impl {

void LostValues::add(const std::string& tensor, CastLosses losses) {
  std::lock_guard lock(mutex_);
  if (losses.infinite > 0) infinite_[tensor] += losses.infinite;
  total_.infinite += losses.infinite, total_.zero += losses.zero;
}

std::vector<LostValues::Tensor> LostValues::tensors() const {
  std::vector<Tensor> out;
  for (const auto& [name, count] : infinite_) out.push_back({name, count});
  std::ranges::stable_sort(out, std::greater(), &Tensor::infinite);
  return out;
}

}  // namespace mckpt::impl
