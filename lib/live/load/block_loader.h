// The block loader: carries out a job whose destinations are a device's memory. Every block of 4 MiB of the
// sources is read once by the ranks of one host: a thread of one rank reads it into staging memory and
// uploads it to the device (with host memory there is no upload); there its items are scattered to their
// places. Blocks that several ranks need go from device to device.
//
//   threads read -> staging, one uploads -> scatter             a rank's own blocks
//                            one uploads -> round buffer        shared ones: the calling thread
//                                           exchange, scatter   exchanges and scatters them by rounds
//
// The size of the buffers does not depend on the model; the plan takes some tens of bytes for every block.
#pragma once

#include <functional>
#include <optional>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;
class CopyJob;
class Device;
class DeviceRanks;
class Observer;
struct CopyCounts;

// The threads with which a GPU is fed. Eight fill the link of most hosts, and more take the memory's
// bandwidth from each other; where eight are too slow, the loader sees the GPU wait and adds some.
inline constexpr int kThreadsOfGpu = 8, kMostThreadsOfGpu = 14;

// Plain values; the observer outlives the call.
struct BlockLoadOptions {
  int threads = 1;               // threads that read; fewer if the system cannot start so many
  int most_threads = 0;          // readers are added up to this number while a GPU waits for blocks
  Observer* observer = nullptr;  // null: nothing is reported, and nothing stops the load
  // The most blocks that a rank sends, and that it receives, in one round. None: what suits the device.
  std::optional<i64> round_blocks = std::nullopt;
};

// The threads for one of `ranks` GPUs of this host, each fed by a process of its own.
BlockLoadOptions threads_for_gpu(int ranks);

// Collective over the ranks that share the sources; `ranks` connects the devices of `sharers`. Returns what
// this rank read and wrote. Throws kReadFailed, kInterrupted, kRanksFailed; the destinations are then partly
// written.
CopyCounts load_blocks(const CopyJob& job, const std::function<u8*(i32 file)>& address, Device& device,
                       Comm& sharers, DeviceRanks& ranks, const BlockLoadOptions& options);

}  // namespace mckpt::impl
