// CallCounts: which collectives a rank has called, and what they brought it, as the communicators themselves
// count: one for each call of MPI or NCCL, so that a message that is cut into pieces counts several times.
//
//   all_gather of 100 bytes on each of 4 ranks     1 call, 300 bytes received
//   broadcast of 100 bytes                         1 call, 100 bytes received, 0 by the root
#pragma once

#include <array>
#include <atomic>

#include "core/base/int.h"

namespace mckpt::impl {

enum class CommCall : u8 { kBarrier, kBroadcast, kAllGather, kAllGatherV, kExchange, kAllReduce, kSplit };
inline constexpr std::size_t kCommCalls = 7;
const char* call_name(CommCall call);  // "all_gather"

struct CallCount {
  i64 calls = 0;
  i64 received = 0;  // bytes from other ranks; of a reduction, the bytes of the result
};

// By CommCall. A value.
struct CallCounts {
  std::array<CallCount, kCommCalls> of{};

  CallCount total() const;
  // The calls since `before`.
  CallCounts since(const CallCounts& before) const;
};

// The counter of a rank. Thread-safe.
class CallCounter {
 public:
  void count(CommCall call, i64 received) {
    const std::size_t c = static_cast<std::size_t>(call);
    calls_[c].fetch_add(1, std::memory_order_relaxed);
    received_[c].fetch_add(received, std::memory_order_relaxed);
  }
  CallCounts counts() const;

 private:
  std::array<std::atomic<i64>, kCommCalls> calls_{}, received_{};
};

}  // namespace mckpt::impl
