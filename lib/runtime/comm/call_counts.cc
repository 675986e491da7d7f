// Names of collectives, and sums and differences of their counts.
#include "runtime/comm/call_counts.h"

namespace mckpt::impl {

const char* call_name(CommCall call) {
  constexpr const char* kNames[kCommCalls] = {"barrier",  "broadcast",  "all_gather", "all_gather_v",
                                              "exchange", "all_reduce", "split"};
  return kNames[static_cast<std::size_t>(call)];
}

CallCount CallCounts::total() const {
  CallCount all;
  for (const CallCount& c : of) all.calls += c.calls, all.received += c.received;
  return all;
}

CallCounts CallCounts::since(const CallCounts& before) const {
  CallCounts out;
  for (std::size_t c = 0; c < kCommCalls; c++) {
    out.of[c].calls = of[c].calls - before.of[c].calls;
    out.of[c].received = of[c].received - before.of[c].received;
  }
  return out;
}

CallCounts CallCounter::counts() const {
  CallCounts out;
  for (std::size_t c = 0; c < kCommCalls; c++) out.of[c] = {calls_[c].load(), received_[c].load()};
  return out;
}

}  // namespace mckpt::impl
