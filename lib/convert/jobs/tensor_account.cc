// Uses are merged task by task, because a task that interleaves two sources has a move for each stretch of
// items, and once more at the end, because a tensor may be written by many tasks.
#include "convert/jobs/tensor_account.h"

#include <algorithm>
#include <tuple>

namespace mckpt::impl {
namespace {

auto cast_key(const ItemCast& c) { return std::tuple(c.from, c.via, c.to, c.add_before, c.add_after); }

bool before(const TensorUse& a, const TensorUse& b) {
  return std::tuple(a.target, a.source) != std::tuple(b.target, b.source)
             ? std::tuple(a.target, a.source) < std::tuple(b.target, b.source)
             : cast_key(a.cast) < cast_key(b.cast);
}

}  // namespace

void merge_uses(std::vector<TensorUse>& uses, std::size_t begin) {
  std::sort(uses.begin() + static_cast<std::ptrdiff_t>(begin), uses.end(), before);
  std::size_t kept = begin;
  for (std::size_t i = begin; i < uses.size(); i++) {
    const TensorUse& use = uses[i];
    if (kept == begin || before(uses[kept - 1], use)) {
      uses[kept++] = use;
      continue;
    }
    TensorUse& sum = uses[kept - 1];
    sum.items += use.items;
    if (std::tuple(use.file, use.byte) < std::tuple(sum.file, sum.byte))
      sum.file = use.file, sum.byte = use.byte;
  }
  uses.resize(kept);
}

void order_uses(std::vector<TensorUse>& uses) {
  std::ranges::sort(uses, {},
                    [](const TensorUse& u) { return std::tuple(u.target, u.file, u.byte, u.source); });
}

}  // namespace mckpt::impl
