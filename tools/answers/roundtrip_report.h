// Prints the result of a round trip through a live sharded model: times, memory, and what differs.
//
//   load      every rank reads its part of the files        check     the live weights equal the files
//   unshard   every module gathered once                    export, compare     the way back, bit for bit
//
// Each is a phase, with the seconds of the slowest rank and the bytes of all ranks.
#pragma once

#include <optional>

namespace mckpt::impl {

class LiveModel;
class ModelMap;
struct GlobalFlags;
struct LogitsAnswer;
struct RoundTripResult;
struct RoundtripFlags;

struct RoundtripReport {
  const RoundTripResult& result;
  const RoundtripFlags& options;
  const ModelMap& map;
  const std::optional<LogitsAnswer>& logits;  // with --logits
};

// Collective. Rank 0 prints it, as JSON or in words.
void write_roundtrip(const GlobalFlags& flags, const RoundtripReport& report, const LiveModel& model);

}  // namespace mckpt::impl
