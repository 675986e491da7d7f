// The likeness of a branch of a tree of names: a hash of the names, types and shapes below it.
#pragma once

#include <memory>
#include <unordered_set>

#include "core/base/int.h"

namespace mckpt::impl {

// The likeness a, with what b stands for behind it.
inline u64 mixed_likeness(u64 a, u64 b) {
  u64 h = (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd;
  return h ^ (h >> 32);
}

// Likenesses of the numbered branches of one node. Most have one alone.
class Likenesses {
 public:
  // False if it was there.
  bool insert(u64 likeness) {
    if (!some_) return some_ = true, first_ = likeness, true;
    if (likeness == first_) return false;
    if (!more_) more_ = std::make_unique<std::unordered_set<u64>>();
    return more_->insert(likeness).second;
  }

 private:
  bool some_ = false;
  u64 first_ = 0;
  std::unique_ptr<std::unordered_set<u64>> more_;
};

}  // namespace mckpt::impl
