// Memory for what is made of a pickle's values. A pickle refers to one value at many places for two bytes each,
// and what is copied at each place can be any number of times as large as the file:
//
//   w0: [c, c, c, ...]   w1: the same list   w2: the same list ...      c: one chunk of 60 dimensions
#pragma once

#include "core/base/error.h"
#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl {

class PickleRoom {
 public:
  // `times`: how many times its part of the pickle a value may take that is copied once.
  PickleRoom(i64 pickle_bytes, i64 times)
      : times_(times),
        left_(checked_add(kRoom, checked_mul(times, pickle_bytes, "the room"), "the room")) {}

  // Throws kPickleLimit.
  void take(i64 bytes) {
    left_ -= bytes;
    if (left_ < 0)
      throw Error(Code::kPickleLimit,
                  "the pickle refers to the same values more often than its size justifies")
          .expected(cat("at most ", kRoom >> 20, " MiB and ", times_, " times the pickle"));
  }

 private:
  static constexpr i64 kRoom = i64{4} << 20;
  i64 times_, left_;
};

}  // namespace mckpt::impl
