// Reads device memory on the host, through staging memory and in pieces. A reader makes its lane and its
// buffer when it first reads from a device that is not the host.
#include "live/device/device_bytes.h"

#include <algorithm>

namespace mckpt::impl {

std::span<const u8> DeviceReader::read(const u8* at, i64 bytes) {
  std::size_t size = static_cast<std::size_t>(bytes);
  if (device_.is_host() || bytes == 0) return {at, size};
  if (!lane_) {
    lane_ = device_.lane();
    staging_ = Block(device_.staging(), kMostBytes);
  }
  lane_->download(at, {staging_.data(), size});
  lane_->wait();
  return {staging_.data(), size};
}

DeviceBytes::DeviceBytes(Device& device, std::span<const u8> bytes)
    : ByteSource(std::ssize(bytes)), device_(device), bytes_(bytes) {}

// Takes an idle reader, or makes one, and puts it back. A reader is lost if reading throws.
void DeviceBytes::read_inside(i64 offset, std::span<u8> to) const {
  std::unique_ptr<DeviceReader> reader;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) reader = std::move(idle_.back()), idle_.pop_back();
  }
  if (!reader) reader = std::make_unique<DeviceReader>(device_);
  while (!to.empty()) {
    i64 bytes = std::min(std::ssize(to), DeviceReader::kMostBytes);
    std::ranges::copy(reader->read(bytes_.data() + offset, bytes), to.begin());
    to = to.subspan(static_cast<std::size_t>(bytes));
    offset += bytes;
  }
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(reader));
}

}  // namespace mckpt::impl
