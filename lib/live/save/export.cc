// One round of an export, on each rank:
//
//   1  pack       the rank's own items of every batch of the round, batch by batch, into the send buffer
//   2  exchange   with all ranks: what they need for their batches, against what this rank needs for its own
//   3  unpack     the items of the own batch, with casts, into a window in the order of the files
//   4  write      the window, by the threads of a WriteQueue, while the next round begins
//
// All ranks compute the plan of every round from the same layout, so that no sizes are exchanged.
#include "live/save/export.h"

#include <algorithm>
#include <array>

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "core/items/apply_move.h"
#include "io/output/copy_sink.h"
#include "live/device/device.h"
#include "live/device/memory.h"
#include "live/model/all_chunks.h"
#include "live/model/chunks.h"
#include "live/model/model.h"
#include "live/save/export_windows.h"
#include "live/save/write_queue.h"
#include "runtime/comm/activity.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// A block of at least `bytes`: the present one, or a larger one in its place, whose contents are undefined.
u8* reserve(Block& block, Memory& memory, i64 bytes) {
  if (block.bytes() >= bytes) return block.data();
  block = Block();
  block = Block(memory, bytes);
  return block.data();
}

// One export of one rank; run() is called once.
class LiveExporter {
 public:
  LiveExporter(const LiveModel& model, const KeyTable& keys, const AllChunks& chunks, const ChunkJob& job,
               CopySink& out, const LiveExportOptions& options)
      : device_(model.device()),
        ranks_(model.world_ranks()),
        activity_(model.world().activity()),
        chunks_(chunks.chunks),
        plan_(job),
        live_(model, keys),
        task_(plan_, ranks_.rank()),
        options_(options),
        lane_(device_.lane()),
        queue_(out, options.writers) {}

  LiveExportCounts run() {
    // The worst case: one rank sends everything of a round, to every other rank, in a type that is wider than
    // the written one; what it receives has that type too; and two windows are being filled or written.
    i64 windows = widest_ratio(plan_) * ranks_.size() + 2;
    std::vector<Batch> batches = export_batches(plan_, ranks_.size(), options_.memory_bytes / windows);
    std::size_t writers = static_cast<std::size_t>(ranks_.size());
    for (std::size_t first = 0; first < batches.size(); first += writers)
      round(std::span(batches).subspan(first, std::min(writers, batches.size() - first)));
    for (std::size_t w = 0; w < windows_.size(); w++) queue_.wait(w);
    return counts_;
  }

 private:
  using Batch = std::vector<ExportUnit>;

  // A stretch of a tensor in the batch that this rank writes: its place in a file, and the parts that make it
  // up.
  struct Own {
    ItemRange items;
    ItemCast cast;
    i32 file;
    i64 offset;  // of the tensor, in the file
    Region region;
    std::vector<ExportPart> parts;
  };
  // Items that are not written, because others should be the same: the items in the twin of the window must
  // equal the items of the window at the same place. They are compared as they are written, after the cast.
  struct Compared {
    Move move;              // from the twin to the window
    i64 item_bytes, place;  // in the twin and in the window, of the item with number `first`
    i64 first;
    Region region;
  };

  // One round. Batch r is written by rank r. A rank packs what it has of its own batch directly into the
  // receive buffer.
  void round(std::span<const Batch> batches) {
    if (options_.observer && options_.observer->stop())
      throw Error(Code::kInterrupted, "the export was stopped before it was done");
    std::size_t ranks = static_cast<std::size_t>(ranks_.size()), me = static_cast<std::size_t>(ranks_.rank());
    std::vector<i64> send_bytes(ranks), receive_bytes(ranks);
    std::vector<ItemCopy> packs;      // `to` is set when all sizes are known
    std::vector<std::size_t> writer;  // by pack: the rank that writes it
    std::vector<Own> own;
    for (std::size_t w = 0; w < batches.size(); w++)
      for (const ExportUnit& unit : batches[w]) {
        const CopyTask& t = task_.go_to(unit.task);
        i64 item = dtype_bytes(t.cast.from, 1);
        for (const ExportPart& part : task_.own_parts(unit.items)) {
          packs.push_back(part.packing(chunk_address(part.chunk), nullptr, t.cast.from));
          writer.push_back(w);
          send_bytes[w] += part.bytes(item);
        }
        if (w != me) continue;
        const Region& to = t.plan.destination(0);
        own.push_back({unit.items, t.cast, to.file, to.offset, to, task_.parts(unit.items)});
        for (const ExportPart& part : own.back().parts) receive_bytes[part.rank] += part.bytes(item);
      }
    std::vector<u8*> sent = lay_out(send_, send_bytes, me),
                     received = lay_out(received_, receive_bytes, ranks);
    sent[me] = received[me];
    std::vector<u8*> next = sent;
    for (std::size_t p = 0; p < packs.size(); p++) {
      packs[p].to = next[writer[p]];
      next[writer[p]] += dtype_bytes(packs[p].cast.to, packs[p].items());
    }
    lane_->scatter(packs);
    exchange(sent, send_bytes, received, receive_bytes);
    if (me < batches.size()) put_together(own, std::move(received));
    ranks_.wait(*lane_);
    if (me < batches.size()) start_writing();
    activity_.made_progress();
  }

  // Reserves memory for a stretch of `bytes[r]` for each rank and returns their addresses; `left_out` gets no
  // memory.
  std::vector<u8*> lay_out(Block& block, std::span<const i64> bytes, std::size_t left_out) {
    i64 all = 0;
    std::vector<i64> begins;
    for (std::size_t r = 0; r < bytes.size(); r++) {
      begins.push_back(all);
      if (r != left_out) all += ceil_div(bytes[r], kAlignment) * kAlignment;
    }
    u8* data = reserve(block, device_.weights(), std::max<i64>(all, 1));
    std::vector<u8*> places;
    for (i64 begin : begins) places.push_back(data + begin);
    return places;
  }

  // The device memory of one of this rank's chunks. Throws kInternal if the model has no such chunk.
  const u8* chunk_address(i32 chunk) const {
    i64 mine = live_.find(chunks_.key(chunk), chunks_.box(chunk).offsets);
    if (mine < 0)
      throw Error(Code::kInternal,
                  "a rank lacks a chunk that it should have: the model is sharded in another way")
          .tensor(chunks_.name(chunk));
    return live_.bytes(mine).data();
  }

  // Gives the exchange to the lane: parts of no bytes are left out, and the own part stays where it was
  // packed.
  void exchange(const std::vector<u8*>& sent, const std::vector<i64>& send_bytes,
                const std::vector<u8*>& received, const std::vector<i64>& receive_bytes) {
    std::vector<DeviceRanks::Part> sends, receives;
    for (int r = 0; r < ranks_.size(); r++) {
      std::size_t at = static_cast<std::size_t>(r);
      counts_.bytes_received += receive_bytes[at];
      if (r == ranks_.rank()) continue;
      if (send_bytes[at] > 0) sends.push_back({r, sent[at], send_bytes[at]});
      if (receive_bytes[at] > 0) receives.push_back({r, received[at], receive_bytes[at]});
    }
    ranks_.exchange(*lane_, sends, receives);
  }

  // A stretch of a file.
  struct Write {
    i32 file;
    i64 offset, window, bytes;  // window: the place in the window
  };

  // Places the units in the window. Units that follow each other in a file become one write. The address of a
  // write in the window equals its offset in the file modulo a page, as direct writing requires.
  std::vector<Write> place(const std::vector<Own>& units, std::vector<i64>& places) {
    std::vector<Write> writes;
    i64 end = 0;
    for (const Own& unit : units) {
      i64 item = dtype_bytes(unit.cast.to, 1), offset = unit.offset + unit.items.begin * item;
      bool follows = !writes.empty() && writes.back().file == unit.file &&
                     writes.back().offset + writes.back().bytes == offset;
      if (!follows) {
        end = ceil_div(end, kAlignment) * kAlignment + offset % kAlignment;
        writes.push_back({unit.file, offset, end, 0});
      }
      places.push_back(end);
      writes.back().bytes += unit.items.items() * item;
      end += unit.items.items() * item;
    }
    return writes;
  }

  // Unpacks what was received into the next window, when the earlier contents of the window are written.
  void put_together(const std::vector<Own>& units, std::vector<u8*> received) {
    std::vector<i64> places;
    next_writes_ = place(units, places);
    i64 bytes = next_writes_.back().window + next_writes_.back().bytes;
    queue_.wait(next_window_);
    Window& window = windows_[next_window_];
    u8 *put = reserve(window.device, device_.weights(), bytes), *twin = nullptr;
    std::vector<ItemCopy> copies;
    compared_.clear();
    for (std::size_t u = 0; u < units.size(); u++) {
      const Own& unit = units[u];
      i64 from_item = dtype_bytes(unit.cast.from, 1), to_item = dtype_bytes(unit.cast.to, 1);
      i64 first_place = places[u] - unit.items.begin * to_item;
      for (const ExportPart& part : unit.parts) {
        u8*& at = received[part.rank];
        bool compared = part.move.kind == MoveKind::kEqual;
        if (compared && !twin) twin = reserve(window.twin, device_.weights(), bytes);
        copies.push_back(part.unpacking(at, (compared ? twin : put) + first_place, unit.cast));
        at += part.bytes(from_item);
        if (compared)
          compared_.push_back({part.within_destination(), to_item, places[u], unit.items.begin, unit.region});
      }
      counts_.bytes_written += unit.items.items() * to_item;
    }
    lane_->scatter(copies);
    if (device_.is_host()) return;
    u8* staged = reserve(window.staging, device_.staging(), bytes);
    lane_->download(put, {staged, static_cast<std::size_t>(bytes)});
    if (!twin) return;
    u8* staged_twin = reserve(window.twin_staging, device_.staging(), bytes);
    lane_->download(twin, {staged_twin, static_cast<std::size_t>(bytes)});
  }

  // Throws as ChunkJob::refuse_unlike() does.
  void compare_twins(const u8* data, const u8* twin) const {
    for (const Compared& c : compared_)
      if (i64 item = first_unlike(c.move, c.item_bytes, {twin + c.place, c.first}, {data + c.place, c.first});
          item >= 0)
        plan_.refuse_unlike(c.region, item);
  }

  // Gives the window to the queue, in pieces of 8 MiB so that several threads write at once.
  void start_writing() {
    constexpr i64 kPieceBytes = 8 << 20;
    const Window& window = windows_[next_window_];
    const u8* data = (device_.is_host() ? window.device : window.staging).data();
    if (!compared_.empty())
      compare_twins(data, (device_.is_host() ? window.twin : window.twin_staging).data());
    std::vector<WriteQueue::Stretch> pieces;
    for (const Write& w : next_writes_) {
      if (options_.observer) options_.observer->done(w.bytes);
      for (i64 at = 0, end; at < w.bytes; at = end) {
        end = std::min(w.bytes, (w.offset + at + kPieceBytes) / kAlignment * kAlignment - w.offset);
        pieces.push_back({w.file, w.offset + at, {data + w.window + at, static_cast<std::size_t>(end - at)}});
      }
    }
    queue_.add(next_window_, pieces);
    next_window_ = (next_window_ + 1) % windows_.size();
  }

  static constexpr i64 kAlignment = 4096;
  struct Window {
    Block device, staging, twin, twin_staging;
  };

  Device& device_;
  DeviceRanks& ranks_;
  Activity& activity_;
  const PlannedChunks& chunks_;  // of all ranks
  const ChunkJob& plan_;
  LiveChunks live_;
  LiveExportCounts counts_;

  ExportTask task_;
  Block send_, received_;
  LiveExportOptions options_;
  std::array<Window, WriteQueue::kWindows> windows_;
  std::size_t next_window_ = 0;
  std::vector<Write> next_writes_;
  std::vector<Compared> compared_;
  // The last members, so that they end before the memory that they use is freed.
  std::unique_ptr<Lane> lane_;
  WriteQueue queue_;
};

}  // namespace

ChunkJob live_export_job(const KeyTable& keys, const AllChunks& chunks, const PlacedTensors& tensors) {
  return export_job(nullptr, keys, chunks.chunks, tensors);
}

LiveExportCounts export_model(const LiveModel& model, const KeyTable& keys, const AllChunks& chunks,
                              const ChunkJob& job, CopySink& out, const LiveExportOptions& options) {
  model.wait_for_writes();
  return LiveExporter(model, keys, chunks, job, out, options).run();
}

}  // namespace mckpt::impl
