// Prints the result of a round trip through a live sharded model: times, memory, and what differs.
#pragma once

namespace mckpt::impl {

class LiveModel;
class ModelMap;
struct GlobalFlags;
struct RoundTripResult;
struct RoundtripOptions;

struct RoundtripReport {
  const RoundTripResult& result;
  const RoundtripOptions& options;
  const ModelMap& map;
};

// Collective. Rank 0 prints it, as JSON or in words.
void write_roundtrip(const GlobalFlags& flags, const RoundtripReport& report, const LiveModel& model);

}  // namespace mckpt::impl
