// Bytes of a device, read on the host. On a GPU they are copied through staging memory, 2 MiB at a time; on
// the host device they are read where they are.
//
//   DeviceReader   a span of bytes at a time, for a comparison
//   DeviceBytes    a stretch of device memory as a ByteSource, so that a copy job can read it like a file
#pragma once

#include <mutex>
#include <vector>

#include "io/file/file.h"
#include "live/device/device.h"

namespace mckpt::impl {

// Reads one span after the other through one buffer. Used by one thread at a time.
class DeviceReader {
 public:
  explicit DeviceReader(Device& device) : device_(device) {}  // outlives this
  static constexpr i64 kMostBytes = 2 << 20;

  // The bytes at that address, valid until the next call. pre: bytes <= kMostBytes.
  std::span<const u8> read(const u8* at, i64 bytes);

 private:
  Device& device_;
  std::unique_ptr<Lane> lane_;
  Block staging_;
};

// A stretch of device memory as a source of bytes. Thread-safe: each thread that reads at a time uses a
// reader of its own, and readers are kept for the next read.
class DeviceBytes final : public ByteSource {
 public:
  // The device and its memory outlive this object.
  DeviceBytes(Device& device, std::span<const u8> bytes);

 private:
  void read_inside(i64 offset, std::span<u8> to) const override;

  Device& device_;
  std::span<const u8> bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<DeviceReader>> idle_;  // readers that no thread uses at the moment
};

}  // namespace mckpt::impl
