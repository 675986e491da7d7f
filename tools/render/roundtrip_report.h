// The result of a round trip through a live sharded model, over all ranks.
//
//   load      every rank reads its part of the files        check     the live weights are those of the files
//   unshard   every module gathered once                    export, compare     the way back, bit for bit
//
// Each is a phase, with the seconds of the slowest rank and the bytes of all ranks.
#pragma once

#include <string>
#include <vector>

#include "live/model/model.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

// One part of the work, in the slowest rank; bytes of all ranks together.
struct RoundtripPhase {
  const char* name;
  double seconds = 0;
  i64 bytes = 0;
};

// What all ranks found together. Each rank has the same report; rank 0 prints it.
struct RoundtripReport {
  bool differs = false, compared = false;  // compared: what came back too
  std::string device, output, checkpoint;  // the folders; "" where they are not kept
  int threads = 0;                         // of rank 0
  i64 tensors = 0, parameters = 0;
  std::vector<RoundtripPhase> phases;
  i64 weights_bytes = 0, gathered_bytes = 0, peak_rss = 0;  // of the rank with most
  i64 difference_count = 0;
  std::vector<std::string> differences;  // the first of them
};

// Prints from rank 0, as JSON or in words; does nothing in other ranks.
void write_roundtrip(const GlobalFlags& flags, const RoundtripReport& report, const LiveModel& model);

}  // namespace mckpt::impl
