// Three kinds of threads: readers take blocks and read them; with a GPU, one thread uploads them; the calling
// thread exchanges shared blocks with other ranks.
//
//   round r of shared blocks     readers fill its sends -> exchange(r): send, receive, scatter -> its buffer is free
//   own blocks                   read, upload, scatter, whenever no shared block is to be read
//                                (an upload straight to the places, where no item has to be moved apart)
//
// Two rounds are in progress at a time: readers fill one buffer while the other is exchanged. The first error
// stops all threads and is thrown by run().
#include "live/load/block_loader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/copy/counts.h"
#include "io/copy/job.h"
#include "io/file/file.h"
#include "io/file/parallel.h"
#include "live/load/block_plan.h"
#include "live/load/block_share.h"
#include "live/load/block_uploader.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPage = ByteSource::kPage;
constexpr i64 kRoom = BlockId::kBytes + kPage;  // of a block with its tail
constexpr std::size_t kBuffers = 2;             // rounds in progress
constexpr int kSlots = 2;                       // blocks for each thread: one is read, one is uploaded
constexpr i64 kMemoryOfReader = i64{32}
                                << 20;  // of a run, as the job counts it: 8 MiB are for chunks at strides

// The blocks that every rank needs, and the most bytes that any of them needs beyond the end of a block, if
// an item crosses a border.
struct Needs {
  std::vector<std::vector<u64>> blocks;
  i64 tail_bytes = 0;
};

// Collective: every rank learns the blocks of all.
Needs exchange_needs(const BlockPlan& plan, Comm& sharers) {
  std::vector<u64> mine{plan.crosses_borders()};
  for (BlockId block : plan.blocks()) mine.push_back(block.packed());
  Gathered all = sharers.all_gather_v(std::as_bytes(std::span(mine)));
  Needs needs;
  for (int r = 0; r < sharers.size(); r++) {
    std::span<const std::byte> bytes = all.of(r);
    std::vector<u64> theirs(bytes.size() / sizeof(u64));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    if (theirs.front()) needs.tail_bytes = BlockId::kTailBytes;
    needs.blocks.emplace_back(theirs.begin() + 1, theirs.end());
  }
  return needs;
}

// Whether the copy moves one stretch of bytes as it is.
bool is_stretch(const ItemCopy& c) { return c.cast.identity() && c.inner.count == 1 && c.outer.count == 1; }

// One load of one rank; run() is called once.
class BlockLoader {
 public:
  BlockLoader(const CopyJob& job, const BlockPlan& plan, const Needs& needs, Device& device,
              DeviceRanks& ranks, const BlockLoadOptions& options)
      : job_(job),
        plan_(plan),
        device_(device),
        ranks_(ranks),
        options_(options),
        tail_bytes_(needs.tail_bytes),
        share_(needs.blocks, ranks.rank(), options.round_blocks.value_or(device.is_host() ? 4 : 16)) {
    std::size_t most = 0;
    for (const BlockShare::Round& round : share_.rounds()) {
      most = std::max(most, round.sends.size() + round.receives.size());
      unread_.push_back(std::ssize(round.sends));
    }
    if (most > 0)
      for (Block& buffer : buffers_) buffer = Block(device.weights(), static_cast<i64>(most) * kRoom);
    if (!device.is_host()) make_uploader();
  }

  CopyCounts run() {
    const int readers = std::max(options_.threads, options_.most_threads);
    job_.prepare(readers, readers * kMemoryOfReader);
    std::unique_ptr<Lane> lane = device_.lane();
    for (const BlockPlan::Stretch& zeros : plan_.zeros()) lane->zero(zeros.at, zeros.bytes);
    lane->wait();
    upload_constants(*lane);
    {
      std::jthread uploading;
      if (uploader_) uploading = std::jthread([this] { guard([&] { uploader_->run(); }); });
      guard([&] {
        start_readers();
        for (std::size_t r = 0; r < share_.rounds().size(); r++) exchange(r, *lane);
      });
      join_readers();
      if (uploader_) uploader_->end();
    }
    lane->wait();
    if (error_) std::rethrow_exception(error_);
    add(uploaded_);
    return counts_;
  }

 private:
  // A norm of ones has a few thousand items, so each is uploaded by itself.
  void upload_constants(Lane& lane) {
    for (const BlockPlan::Constant& c : plan_.constants()) {
      Block staging(device_.staging(), std::ssize(c.bytes));
      std::ranges::copy(c.bytes, staging.data());
      lane.upload({staging.data(), c.bytes.size()}, c.at);
      lane.wait();
    }
  }

  void start_readers() {
    std::lock_guard lock(readers_mutex_);
    try {
      for (; reader_count_ < options_.threads; reader_count_++)
        readers_.emplace_back([this] { guard([&] { read(); }); });
    } catch (const std::system_error&) {  // the threads that started do the work
      if (readers_.empty()) throw;
    }
  }

  // Waits for all readers, those that are added meanwhile too.
  void join_readers() {
    while (true) {
      std::vector<std::jthread> some;
      {
        std::lock_guard lock(readers_mutex_);
        some.swap(readers_);
        if (some.empty()) {
          readers_ended_ = true;
          return;
        }
      }
    }
  }

  // Called by the uploader's thread. A GPU that had nothing to do for a tenth of the last milliseconds gets
  // one reader more; the wait for the first block does not count.
  void gpu_idled(std::chrono::nanoseconds time) {
    constexpr std::chrono::milliseconds kSpan(8);
    auto now = std::chrono::steady_clock::now();
    if (span_begin_ == std::chrono::steady_clock::time_point{}) {
      span_begin_ = now;
      return;
    }
    idle_ += time;
    if (now - span_begin_ < kSpan) return;
    if (idle_ * 10 > now - span_begin_) add_reader();
    span_begin_ = now, idle_ = {};
  }

  // With slots of its own. A reader for which the system has no thread or no memory is left out.
  void add_reader() {
    std::lock_guard lock(readers_mutex_);
    if (readers_ended_ || reader_count_ >= options_.most_threads) return;
    try {
      readers_.emplace_back([this] {
        try {
          uploader_->grow(kSlots);
        } catch (const Error&) {
          return;
        }
        guard([&] { read(); });
      });
      reader_count_++;
    } catch (const std::system_error&) {
    }
  }

  // Runs fn; keeps the first error of any thread, and wakes all threads so that they end.
  void guard(const std::function<void()>& fn) {
    try {
      fn();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      changed_.notify_all();
      if (uploader_) uploader_->stop();
    }
  }

  // The uploader's calls: shared blocks go to their place in the round's buffer, own blocks straight to the
  // places of their items, or to the slot's memory and from there to their places.
  void make_uploader() {
    BlockUploader::Calls calls;
    calls.straight = [this](const BlockWork& work, const u8* staging, Lane& upward) {
      return !work.round && upload_straight(work.block, staging, upward);
    };
    calls.target = [this](const BlockWork& work) {
      return work.round ? place_in(*work.round, work.place) : nullptr;
    };
    calls.behind = [this](const BlockWork& work, const u8* data, Lane& lane) {
      if (!work.round) scatter(work.block, data, lane, uploaded_copies_, uploaded_);
    };
    calls.landed = [this](const BlockWork& work) {
      if (work.round) arrived(*work.round);
    };
    calls.idled = [this](std::chrono::nanoseconds time) { gpu_idled(time); };
    uploader_.emplace(device_, options_.threads * kSlots, kRoom, std::move(calls));
  }

  // The address of a block in the buffer of a round: first the sends, then the receives.
  u8* place_in(std::size_t round, std::size_t place) const {
    return buffers_[round % kBuffers].data() + static_cast<i64>(place) * kRoom;
  }

  // The next block to read: shared blocks first, because other ranks wait for them. Nothing when all are
  // taken.
  std::optional<BlockWork> take() {
    std::unique_lock lock(mutex_);
    while (!error_) {
      while (round_ < share_.rounds().size() && next_send_ == share_.rounds()[round_].sends.size())
        round_++, next_send_ = 0;
      if (round_ < share_.rounds().size() && round_ < exchanged_ + kBuffers) {
        std::size_t place = next_send_++;
        return BlockWork{share_.rounds()[round_].sends[place].block, round_, place};
      }
      if (next_own_ < share_.own().size()) return BlockWork{share_.own()[next_own_++], std::nullopt, 0};
      if (round_ == share_.rounds().size()) return std::nullopt;
      changed_.wait(lock);
    }
    return std::nullopt;
  }

  // The work of a reader. With a GPU, blocks are read into slots of the uploader. With the host's memory,
  // shared blocks are read into the buffer from which they are sent, and other blocks are scattered at once.
  void read() {
    CopyCounts counts;
    std::unique_ptr<Lane> lane;
    Block own;
    if (!uploader_) lane = device_.lane(), own = Block(device_.staging(), kRoom);
    std::vector<ItemCopy> copies;
    while (std::optional<BlockWork> work = take()) {
      if (uploader_) {
        BlockUploader::Slot* slot = uploader_->take();
        if (!slot) break;
        slot->work = *work;
        slot->bytes = read_block(work->block, slot->staging, counts);
        uploader_->hand_on(slot);
      } else if (work->round) {
        read_block(work->block, place_in(*work->round, work->place), counts);
        arrived(*work->round);
      } else {
        read_block(work->block, own.data(), counts);
        scatter(work->block, own.data(), *lane, copies, counts);
      }
      if (options_.observer && options_.observer->stop())
        throw Error(Code::kInterrupted, "loading was stopped before it was done");
    }
    add(counts);
  }

  // Reads a block with its tail. Returns the number of bytes, which is smaller at the end of a file.
  i64 read_block(i64 block, u8* to, CopyCounts& counts) const {
    BlockId id = plan_.blocks()[block];
    const ByteSource& source = job_.source(id.file);
    i64 bytes = std::min(source.size() - id.begin(), BlockId::kBytes + tail_bytes_);
    source.read_block(id.begin(), {to, static_cast<std::size_t>(bytes)});
    counts.bytes_read += bytes;
    counts.reads++;
    return bytes;
  }

  // Notes that a block to be sent is in the round's buffer. The last one starts the round's exchange.
  void arrived(std::size_t round) {
    std::lock_guard lock(mutex_);
    if (--unread_[round] == 0) changed_.notify_all();
  }

  // Uploads the items of a block one stretch after the other, if each copy is one: nothing has to be
  // scattered then.
  bool upload_straight(i64 block, const u8* staging, Lane& upward) {
    uploaded_copies_.clear();
    plan_.copies(block, staging, uploaded_copies_);
    if (!std::ranges::all_of(uploaded_copies_, is_stretch)) return false;
    std::span<const u8> from;  // several copies that are one stretch on both sides
    u8* to = nullptr;
    for (const ItemCopy& c : uploaded_copies_) {
      auto bytes = static_cast<std::size_t>(dtype_bytes(c.cast.to, c.length));
      if (c.from == from.data() + from.size() && c.to == to + from.size()) {
        from = {from.data(), from.size() + bytes};
        continue;
      }
      if (!from.empty()) upward.upload(from, to);
      from = {c.from, bytes}, to = c.to;
    }
    if (!from.empty()) upward.upload(from, to);
    count(uploaded_copies_, uploaded_);
    return true;
  }

  // Moves the items of a block from `data`, on the device, to their places, and counts them.
  void scatter(i64 block, const u8* data, Lane& lane, std::vector<ItemCopy>& copies, CopyCounts& counts) {
    copies.clear();
    plan_.copies(block, data, copies);
    lane.scatter(copies);
    count(copies, counts);
  }

  void count(std::span<const ItemCopy> copies, CopyCounts& counts) const {
    i64 bytes = 0;
    for (const ItemCopy& c : copies) bytes += dtype_bytes(c.cast.to, c.items());
    counts.bytes_written += bytes;
    counts.writes++;
    if (options_.observer) options_.observer->done(bytes);
  }

  // Exchanges the blocks of round r with the other ranks and scatters them. Collective over the ranks of the
  // host.
  void exchange(std::size_t r, Lane& lane) {
    const BlockShare::Round& round = share_.rounds()[r];
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return error_ || unread_[r] == 0; });
      if (error_) return;
    }
    std::vector<DeviceRanks::Part> sends, receives;
    for (std::size_t s = 0; s < round.sends.size(); s++)
      for (int to : round.sends[s].to) sends.push_back({to, place_in(r, s), kRoom});
    for (std::size_t i = 0; i < round.receives.size(); i++)
      receives.push_back({round.receives[i].from, place_in(r, round.sends.size() + i), kRoom});
    ranks_.exchange(lane, sends, receives);
    std::vector<ItemCopy> copies;
    CopyCounts counts;
    for (std::size_t s = 0; s < round.sends.size(); s++)
      scatter(round.sends[s].block, place_in(r, s), lane, copies, counts);
    for (std::size_t i = 0; i < round.receives.size(); i++)
      scatter(round.receives[i].block, place_in(r, round.sends.size() + i), lane, copies, counts);
    ranks_.wait(lane);
    add(counts);
    std::lock_guard lock(mutex_);
    exchanged_ = r + 1;
    changed_.notify_all();
  }

  void add(const CopyCounts& counts) {
    std::lock_guard lock(mutex_);
    counts_ += counts;
  }

  const CopyJob& job_;
  const BlockPlan& plan_;
  Device& device_;
  DeviceRanks& ranks_;
  const BlockLoadOptions& options_;
  i64 tail_bytes_;
  BlockShare share_;
  std::array<Block, kBuffers> buffers_;  // what ranks send, then what they receive

  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  std::size_t round_ = 0, next_send_ = 0, next_own_ = 0;  // the next to be read
  std::size_t exchanged_ = 0;                             // rounds whose exchange is done
  std::vector<i64> unread_;                               // by round: sends not yet in its buffer
  CopyCounts counts_, uploaded_;                          // uploaded_: counts of the uploader's thread
  std::vector<ItemCopy> uploaded_copies_;
  std::optional<BlockUploader> uploader_;  // none if staging memory is the device's own

  std::mutex readers_mutex_;
  std::vector<std::jthread> readers_;  // not yet joined
  int reader_count_ = 0;
  bool readers_ended_ = false;
  // For the uploader's thread: how long the GPU had nothing to do since the time `span_begin_`.
  std::chrono::steady_clock::time_point span_begin_;
  std::chrono::nanoseconds idle_{};
};

}  // namespace

BlockLoadOptions threads_for_gpu(int ranks) {
  int share = std::max(1, default_threads() / ranks);
  return {.threads = std::min(share, kThreadsOfGpu), .most_threads = std::min(share, kMostThreadsOfGpu)};
}

CopyCounts load_blocks(const CopyJob& job, const BlockPlan::Address& address, Device& device, Comm& sharers,
                       DeviceRanks& ranks, const BlockLoadOptions& options) {
  BlockPlan plan(job, address);
  return BlockLoader(job, plan, exchange_needs(plan, sharers), device, ranks, options).run();
}

}  // namespace mckpt::impl
