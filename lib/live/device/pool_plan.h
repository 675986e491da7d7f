// Where the buffers of a pass lie in one slab of memory, once it is known when each of them lives: interval
// colouring with sizes. Buffers whose lives overlap never overlap in memory; the others share it.
//
//   bytes |  bbbb cccccc |        a lives over [0, 5), b over [1, 2), c over [3, 5): b and c share
//         |aaaaaaaaaaaaaa|        what lies behind a
//          0  1  2  3  4   time
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt {

struct PoolLife {
  i64 bytes = 0;
  i64 begin = 0, end = 0;  // it lives over [begin, end); any clock that only goes on will do
};

struct PoolPlan {
  std::vector<i64> offsets;  // by life; multiples of the alignment
  i64 slab_bytes = 0;        // that all of them need
  i64 live_bytes = 0;        // that are live at one time, at most: no plan has a smaller slab
};

// pre: sizes and lives are above 0 and the alignment is a power of two. Takes milliseconds for a thousand
// lives and grows with their square. The plan of the same lives is the same everywhere.
PoolPlan plan_pool(std::span<const PoolLife> lives, i64 alignment);

}  // namespace mckpt
