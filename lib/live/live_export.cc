#include "live/live_export.h"

#include <algorithm>

#include "core/apply_move.h"

namespace mckpt {
namespace {

// A window of a task's destination.
struct Unit {
  i64 task = 0;
  ItemRange items;
};

// What goes from one rank's chunk into a window; the items of its source, one after the other, are what is
// sent.
struct Part {
  Move move;
  i32 chunk = 0, rank = 0;

  i64 bytes(i64 item_bytes) const { return move.items() * item_bytes; }
  // The two halves of the way: into what is sent, and out of it.
  Move packing() const {
    Move m = move;
    m.to = 0;
    m.inner.to_stride = m.length;
    m.outer.to_stride = m.length * m.inner.count;
    return m;
  }
  Move unpacking(i64 window_begin) const {
    Move m = move;
    m.from = 0;
    m.inner.from_stride = m.length;
    m.outer.from_stride = m.length * m.inner.count;
    m.to -= window_begin;
    return m;
  }
};

std::vector<Part> parts_of(const Plan& plan, ItemRange window) {
  std::vector<Part> parts;
  std::vector<Move> moves;
  for (const PlannedMove& planned : plan.moves()) {
    const Region& from = plan.source(planned.move.slot);
    moves.clear();
    clip_destination(planned.move, window, moves);
    for (const Move& m : moves) parts.push_back({m, from.tensor, from.file});
  }
  return parts;
}

class LiveExporter {
 public:
  LiveExporter(const LiveModel& model, const KeyTable& keys, const TensorPlaces& places, CopySink& out)
      : world_(model.world()),
        out_(out),
        holders_(keys, run_of(model), model.setup().adjust),
        chunks_(holders_.layout, holders_.table_key),
        plan_(keys, chunks_, places),
        live_(model, keys) {
    sends_.resize(static_cast<std::size_t>(world_.size()));
  }

  LiveExportCounts run(i64 memory_bytes) {
    // At worst all that is sent comes from one rank, twice as wide as what is written, and is there twice;
    // and a window is received, put together and converted.
    i64 windows = 4 * world_.size() + 5;
    std::vector<std::vector<Unit>> batches = cut(memory_bytes / windows);
    for (std::size_t first = 0; first < batches.size(); first += sends_.size()) {
      for (std::size_t r = 0; r < sends_.size() && first + r < batches.size(); r++)
        for (const Unit& unit : batches[first + r]) pack(unit, static_cast<i32>(r));
      exchange();
      std::size_t mine = first + static_cast<std::size_t>(world_.rank());
      if (mine < batches.size())
        for (const Unit& unit : batches[mine]) write(unit);
      clear();
    }
    return counts_;
  }

 private:
  // Everything in windows of about so many bytes, or smaller, so that all ranks have something to write.
  std::vector<std::vector<Unit>> cut(i64 most_bytes) const {
    i64 total = 0;
    for (i64 t = 0; t < plan_.task_count(); t++) total += plan_.task_bytes(t);
    i64 bytes = std::clamp<i64>(ceil_div(total, world_.size()), 1, std::max<i64>(most_bytes, 64 << 10));
    std::vector<std::vector<Unit>> batches;
    i64 room = 0;
    for (i64 t = 0; t < plan_.task_count(); t++) {
      i64 item = dtype_bytes(plan_.conversion_of(t).to, 1), items = plan_.task_bytes(t) / item;
      for (i64 begin = 0; begin < items;) {
        if (room < item) batches.emplace_back(), room = std::max(bytes, item);
        i64 end = std::min(items, begin + room / item);
        batches.back().push_back({t, {begin, end}});
        room -= (end - begin) * item;
        begin = end;
      }
    }
    return batches;
  }

  const CopyTask& task(i64 index) {
    if (index != planned_) task_ = plan_.task(index), planned_ = index;
    return task_;
  }

  // Puts what this rank has of the window behind what is sent to its writer, and, in the writer, notes what
  // is going to come.
  void pack(const Unit& unit, i32 writer) {
    const CopyTask& t = task(unit.task);
    i64 item = dtype_bytes(t.conversion.from, 1);
    for (const Part& part : parts_of(t.plan, unit.items)) {
      if (writer == world_.rank()) receive_bytes_[static_cast<std::size_t>(part.rank)] += part.bytes(item);
      if (part.rank != world_.rank()) continue;
      std::vector<u8>& to = sends_[static_cast<std::size_t>(writer)];
      std::size_t at = to.size();
      to.resize(at + static_cast<std::size_t>(part.bytes(item)));
      apply_move(part.packing(), item, {chunk_bytes(part.chunk).data(), 0}, {to.data() + at, 0});
    }
  }

  std::span<const u8> chunk_bytes(i32 chunk) const {
    i64 mine = live_.find(chunks_.key(chunk), chunks_.box(chunk).offsets);
    if (mine < 0)
      throw Error(Code::kInternal,
                  "a rank lacks a chunk that it should have: the model is sharded in another way")
          .tensor(holders_.layout.key(holders_.layout.chunk(chunk).key).name.text);
    return live_.bytes(mine);
  }

  void exchange() {
    std::vector<i64> send_bytes;
    send_.clear();
    for (const std::vector<u8>& to : sends_) {
      send_bytes.push_back(std::ssize(to));
      send_.insert(send_.end(), to.begin(), to.end());
    }
    i64 begin = 0;
    begins_.clear();
    for (i64 bytes : receive_bytes_) begins_.push_back(begin), begin += bytes;
    received_.resize(static_cast<std::size_t>(begin));
    world_.exchange(std::as_bytes(std::span(send_)), send_bytes, std::as_writable_bytes(std::span(received_)),
                    receive_bytes_);
    counts_.bytes_received += begin;
  }

  void write(const Unit& unit) {
    const CopyTask& t = task(unit.task);
    i64 from_item = dtype_bytes(t.conversion.from, 1), to_item = dtype_bytes(t.conversion.to, 1);
    window_.resize(static_cast<std::size_t>(unit.items.items() * from_item));
    for (const Part& part : parts_of(t.plan, unit.items)) {
      i64& at = begins_[static_cast<std::size_t>(part.rank)];
      apply_move(part.unpacking(unit.items.begin), from_item, {received_.data() + at, 0},
                 {window_.data(), 0});
      at += part.bytes(from_item);
    }
    bool as_it_is = t.conversion.identity();
    if (!as_it_is) {
      converted_.resize(static_cast<std::size_t>(unit.items.items() * to_item));
      convert_items(t.conversion, window_.data(), converted_.data(), unit.items.items());
    }
    const Region& to = t.plan.destination(0);
    out_.write(to.file, to.offset + unit.items.begin * to_item, as_it_is ? window_ : converted_);
    counts_.bytes_written += unit.items.items() * to_item;
  }

  void clear() {
    for (std::vector<u8>& to : sends_) to.clear();
    receive_bytes_.assign(sends_.size(), 0);
  }

  Comm& world_;
  CopySink& out_;
  FsdpPlan holders_;
  PlannedChunks chunks_;
  ExportPlan plan_;
  LiveChunks live_;
  LiveExportCounts counts_;

  CopyTask task_;
  i64 planned_ = -1;                    // which task that is
  std::vector<std::vector<u8>> sends_;  // by rank
  std::vector<u8> send_, received_, window_, converted_;
  std::vector<i64> receive_bytes_ = std::vector<i64>(static_cast<std::size_t>(world_.size()));
  std::vector<i64> begins_;  // by rank: where what it sent goes on in received_
};

}  // namespace

FsdpRun run_of(const LiveModel& model) {
  const LiveSetup& setup = model.setup();
  FsdpRun run{setup.grid, setup.run, setup.fsdp, setup.main_dtype, nullptr};
  run.fsdp.saved = false;
  return run;
}

LiveExportCounts export_model(const LiveModel& model, const KeyTable& keys, const TensorPlaces& places,
                              CopySink& out, i64 memory_bytes) {
  model.wait_for_writes();
  return LiveExporter(model, keys, places, out).run(memory_bytes);
}

}  // namespace mckpt
