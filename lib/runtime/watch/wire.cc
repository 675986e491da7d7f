#include "runtime/watch/wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

namespace mckpt {
namespace {

static_assert(std::is_trivially_copyable_v<WatchFrame> &&
              std::has_unique_object_representations_v<WatchFrame>);

void set(std::array<char, 32>& field, const char* text) {
  if (text) std::strncpy(field.data(), text, field.size() - 1);
}

}  // namespace

WatchFrame beat_of(const Activity& activity) {
  WatchFrame frame{.say = Say::kBeat, .calls = activity.calls, .progress = activity.progress};
  set(frame.phase, activity.phase);
  set(frame.waiting, activity.waiting);
  return frame;
}

std::string_view text_of(const std::array<char, 32>& field) {
  return {field.data(),
          static_cast<std::size_t>(std::find(field.begin(), field.end(), '\0') - field.begin())};
}

void Wire::send(const WatchFrame& frame) {
  if (!open() || (sending() && frame.say == Say::kBeat)) return;
  std::span<const std::byte> bytes = std::as_bytes(std::span(&frame, 1));
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  flush();
}

void Wire::flush() {
  while (open() && sending()) {
    ssize_t n = ::send(fd(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // it takes no more; that it is gone shows when it is read
    out_.erase(out_.begin(), out_.begin() + n);
  }
}

std::vector<WatchFrame> Wire::receive(std::size_t most) {
  constexpr std::size_t kTurn = 64;  // then the others have theirs
  std::array<std::byte, 16 * sizeof(WatchFrame)> buffer;
  while (open() && in_.size() / sizeof(WatchFrame) < std::min(most, kTurn)) {
    ssize_t n = recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      close();
      break;
    }
    in_.insert(in_.end(), buffer.begin(), buffer.begin() + n);
  }
  std::vector<WatchFrame> frames(std::min(most, in_.size() / sizeof(WatchFrame)));
  for (std::size_t i = 0; i < frames.size(); i++)
    std::memcpy(&frames[i], in_.data() + i * sizeof(WatchFrame), sizeof(WatchFrame));
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(frames.size() * sizeof(WatchFrame)));
  return frames;
}

}  // namespace mckpt
