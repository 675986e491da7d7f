// Bytes of a device, for whoever reads them on the host.
#pragma once

#include <mutex>
#include <vector>

#include "io/file/file.h"
#include "live/device/device.h"

namespace mckpt::impl {

// One thread at a time.
class DeviceReader {
 public:
  explicit DeviceReader(Device& device) : device_(device) {}  // outlives this
  static constexpr i64 kMostBytes = 2 << 20;

  // The bytes, until the next call. pre: at most kMostBytes.
  std::span<const u8> read(const u8* at, i64 bytes);

 private:
  Device& device_;
  std::unique_ptr<Lane> lane_;
  Block staging_;
};

// A stretch of device memory as a source of files.
class DeviceBytes final : public ByteSource {
 public:
  // The device outlives this.
  DeviceBytes(Device& device, std::span<const u8> bytes);

 private:
  void read_inside(i64 offset, std::span<u8> to) const override;

  Device& device_;
  std::span<const u8> bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<DeviceReader>> idle_;  // as many as threads read at once
};

}  // namespace mckpt::impl
