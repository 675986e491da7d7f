// The block loader: carries out a job whose destinations are a device's memory. Every block of the sources is
// read once by the ranks that share a host, each by one of several threads, into staging memory; goes up to
// the device; and is taken apart there. Blocks that several ranks need go from device to device.
//
//   threads read -> staging, one uploads -> scatter             a rank's own blocks
//                            one uploads -> round buffer        shared ones, which the calling thread sends,
//                                           exchange, scatter   receives and takes apart, round by round
//
// The buffers it takes do not depend on the model; its plan has some tens of bytes for every block.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;
class CopyJob;
class Device;
class DeviceRanks;
struct CopyCounts;

struct BlockLoadOptions {
  int threads = 1;  // threads that read; fewer if the system does not grant as many
  const std::atomic<bool>* stop = nullptr;
  std::atomic<i64>* written_bytes = nullptr;
  // The most blocks that a rank sends and receives at a time; the default suits the device.
  std::optional<i64> round_blocks = std::nullopt;
};

// Collective over the ranks that share the sources; `ranks` are those of `sharers`.
CopyCounts load_blocks(const CopyJob& job, const std::function<u8*(i32 file)>& address, Device& device, Comm& sharers,
                       DeviceRanks& ranks, const BlockLoadOptions& options);

}  // namespace mckpt::impl
