// The random choices of a mutator: the same seed makes the same choices, on every machine.
#pragma once

#include <array>
#include <iterator>

#include "core/base/int.h"

namespace mckpt::impl::mutate {

class Choice {
 public:
  explicit Choice(u64 seed) : state_(seed) {}

  u64 next() {  // splitmix64
    u64 z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // pre: n > 0.
  i64 below(i64 n) { return static_cast<i64>(next() % static_cast<u64>(n)); }
  bool one_in(i64 n) { return below(n) == 0; }
  // pre: the range has a member.
  template <typename Range>
  auto& of(Range& range) {
    return *(std::begin(range) + below(std::ssize(range)));
  }

  // A number beside `v`, or one at which sizes and offsets break.
  i64 border_near(i64 v) {
    static constexpr std::array<i64, 22> kBorders = {0,
                                                     1,
                                                     2,
                                                     3,
                                                     7,
                                                     8,
                                                     255,
                                                     256,
                                                     32767,
                                                     65535,
                                                     65536,
                                                     1 << 20,
                                                     -1,
                                                     -2,
                                                     INT32_MAX,
                                                     INT32_MIN,
                                                     UINT32_MAX,
                                                     i64{1} << 32,
                                                     i64{1} << 53,
                                                     i64{1} << 62,
                                                     INT64_MAX,
                                                     INT64_MIN};
    u64 u = static_cast<u64>(v);
    switch (below(8)) {
      case 0:
        return static_cast<i64>(u + 1);
      case 1:
        return static_cast<i64>(u - 1);
      case 2:
        return static_cast<i64>(u * 2);
      case 3:
        return v / 2;
      case 4:
        return static_cast<i64>(0 - u);
      case 5:
        return static_cast<i64>(u ^ u64{1} << below(64));
      default:
        return of(kBorders);
    }
  }

 private:
  u64 state_;
};

}  // namespace mckpt::impl::mutate
