// Ranks whose memory is the host's: device operations become collectives of the Comm. The parts for one rank
// are a stream of bytes; a round takes the next bytes of every stream, copies them into one buffer, and
// exchanges the buffers.
#include "live/device/host_ranks.h"

#include <algorithm>
#include <vector>

#include "live/device/device.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// The parts that go to one rank, or come from it, as one stream of bytes that is used up from the front.
class Stream {
 public:
  void add(const DeviceRanks::Part& part) {
    parts_.push_back({part.data, static_cast<std::size_t>(part.bytes)});
    left_ += part.bytes;
  }
  i64 left() const { return left_; }

  // Takes the next `bytes` bytes and calls fn with them, piece by piece. pre: bytes <= left().
  template <typename Fn>
  void take(i64 bytes, Fn&& fn) {
    left_ -= bytes;
    while (bytes > 0) {
      std::span<u8>& part = parts_[next_];
      std::span<u8> piece = part.first(std::min(part.size(), static_cast<std::size_t>(bytes)));
      fn(piece);
      bytes -= std::ssize(piece);
      part = part.subspan(piece.size());
      if (part.empty()) next_++;
    }
  }

 private:
  std::vector<std::span<u8>> parts_;
  std::size_t next_ = 0;
  i64 left_ = 0;
};

// The streams of all ranks.
class Streams {
 public:
  Streams(int ranks, std::span<const DeviceRanks::Part> parts) : of_(static_cast<std::size_t>(ranks)) {
    for (const DeviceRanks::Part& part : parts) of_[part.rank].add(part);
  }

  i64 longest() const {
    i64 longest = 0;
    for (const Stream& s : of_) longest = std::max(longest, s.left());
    return longest;
  }

  // By rank, the number of bytes in the next round: at most `share` of each stream.
  std::vector<i64> next(i64 share) const {
    std::vector<i64> bytes;
    for (const Stream& s : of_) bytes.push_back(std::min(share, s.left()));
    return bytes;
  }

  // Takes so many bytes of every stream, in the order of the ranks.
  template <typename Fn>
  void take(std::span<const i64> bytes, Fn&& fn) {
    for (std::size_t r = 0; r < of_.size(); r++) of_[r].take(bytes[r], fn);
  }

 private:
  std::vector<Stream> of_;
};

i64 sum(std::span<const i64> numbers) {
  i64 sum = 0;
  for (i64 n : numbers) sum += n;
  return sum;
}

// Lanes are ignored, because a host lane has done its work when it returns. Used by one thread at a time.
class HostRanks final : public DeviceRanks {
 public:
  HostRanks(Comm& comm, i64 round_bytes) : comm_(comm), share_(round_bytes / comm.size()) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }

  void all_gather(Lane&, std::span<const u8> mine, std::span<u8> all) override {
    comm_.all_gather(std::as_bytes(mine), std::as_writable_bytes(all));
  }

  // The number of rounds is set by the longest stream of any rank, so every rank takes part in every round.
  void exchange(Lane&, std::span<const Part> sends, std::span<const Part> receives) override {
    Streams out(size(), sends), in(size(), receives);
    i64 rounds = ceil_div(std::max(out.longest(), in.longest()), share_);
    comm_.all_reduce({&rounds, 1}, Reduce::kMax);
    for (; rounds > 0; rounds--) exchange_round(out, in);
  }

  void wait(Lane& lane) override { lane.wait(); }

 private:
  // One collective. Every rank knows the sizes of its own sends and receives of the round; they agree,
  // because all streams are cut at the same share.
  void exchange_round(Streams& out, Streams& in) {
    std::vector<i64> sent = out.next(share_), received = in.next(share_);
    send_.clear();
    out.take(sent, [&](std::span<const u8> piece) { send_.insert(send_.end(), piece.begin(), piece.end()); });
    receive_.resize(static_cast<std::size_t>(sum(received)));
    comm_.exchange(std::as_bytes(std::span(send_)), sent, std::as_writable_bytes(std::span(receive_)),
                   received);
    auto next = receive_.begin();
    in.take(received, [&](std::span<u8> piece) {
      std::copy_n(next, piece.size(), piece.begin());
      next += std::ssize(piece);
    });
  }

  Comm& comm_;
  i64 share_;  // of a round, to or from one rank
  std::vector<u8> send_, receive_;
};

}  // namespace

std::unique_ptr<DeviceRanks> host_ranks(Comm& comm, i64 round_bytes) {
  return std::make_unique<HostRanks>(comm, round_bytes);
}

std::unique_ptr<DeviceRanks> HostDevice::ranks(Comm& comm) { return host_ranks(comm); }

}  // namespace mckpt::impl
