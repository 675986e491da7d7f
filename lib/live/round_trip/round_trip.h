// A round trip: a Hugging Face model is loaded into a live sharded model, compared there, and exported again.
//
//   load -> unshard -> check [-> save -> reload] -> export -> compare [-> logits]
//
//   load      files into the stored weights of every rank
//   unshard   every sharded module once, for its time alone
//   check     stored weights and live values against the files, read along the rules and not along the plan;
//             the values of each module while the next one is gathered, and slices of context-parallel ranks
//   save      the sharded model as a checkpoint, and back: what is exported comes out of the checkpoint
//   compare   the exported folder with the source, bit by bit
//
// The source is read twice: once to load it and once to check it; the export is read once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "hf/model_options.h"
#include "io/store/finding.h"
#include "runtime/comm/call_counts.h"

namespace mckpt::impl {

class KeptMemory;
class LiveModel;
class Observer;
struct HfModel;

// Plain values, equal on all ranks.
struct RoundTripOptions {
  enum class Until { kLoad, kUnshard, kCheck, kCompare };

  int threads = 1;       // of each rank
  int most_threads = 0;  // see BlockLoadOptions
  i64 repeat = 1;        // how many times the model is loaded and unsharded, and saved and reloaded
  Until until = Until::kCompare;
  std::optional<std::string> output;  // where the exported folder is kept; none: in a folder that is removed
  std::optional<std::string> checkpoint;  // where the model is saved; none: it is not
  bool durable = true;                    // false: no fsync of these two
  HfModelOptions model{};                 // with which the source was opened
  // Looks at the exported folder, on rank 0, and returns what is wrong with it, in words, or "". Set on all
  // ranks or on none.
  std::function<std::string(const std::string& folder)> logits{};
};

// One phase: the time of the slowest rank, and the bytes of all ranks together.
struct RoundTripPhase {
  const char* name;
  double seconds = 0;
  i64 bytes = 0;
  // The collectives, as the communicators of the ranks counted them: calls of the rank with most, and bytes
  // that all ranks received.
  CallCounts collectives{};
};

// The outcome over all ranks, equal on all of them.
struct RoundTripResult {
  bool compared = false;  // what came back too, not only what was loaded
  std::vector<RoundTripPhase> phases;
  i64 cp_slices = 0;  // context-parallel slices of all ranks that were compared with the source
  i64 weights_bytes = 0, gathered_bytes = 0;  // of the rank with most
  i64 difference_count = 0;
  std::vector<std::string> differences;  // the first of them
  std::vector<Finding> oddities;         // of the checkpoint that was saved; nothing is expected here
};

// Collective. `gathered` is the memory into which the model gathers weights; the model was made with the
// source's map. observer.begin() is called with the name of each phase. Throws what loading, saving and
// exporting throw, and kInterrupted.
RoundTripResult round_trip(LiveModel& model, const KeptMemory& gathered, const HfModel& source,
                           const RoundTripOptions& options, Observer& observer);

}  // namespace mckpt::impl
