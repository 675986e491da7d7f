// Carries out a set of windows: add_pieces() first, then the four steps of process():
//
//   add_pieces   a piece for each window; the first window of a region has its head, the last one its tail
//   lay_out      sorts pieces by their places in the result; neighbours there are neighbours in the arena
//   fetch        sorts all moves by the source bytes that they read; reads each gapless stretch once, block
//                by block, and applies to each block the parts of moves that are in it; then the same for moves
//                that only compare
//   finish       casts, fills in heads and tails, takes sums and counts losses
//   write        one call of the sink for each stretch of neighbouring pieces
//
// A block ends with a whole item, and at a page of the file where it can. It is read to an address that
// equals its file offset modulo a page: the kernel copies pages that are aligned alike several times faster.
// For the same reason a stretch begins in the arena at its file offset modulo a page; direct writes need that
// as well.
#include "io/copy/worker.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/items/apply_move.h"
#include "core/items/cast_losses.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "core/items/plan.h"
#include "io/copy/job.h"
#include "io/copy/lost_values.h"
#include "io/copy/read_sums.h"
#include "io/copy/slices.h"
#include "io/copy/task_log.h"
#include "io/copy/written_sums.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/output/copy_sink.h"
#include "runtime/system/memory_room.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPage = ByteSource::kPage;
constexpr i64 kBlockBytes = 1 << 20;

}  // namespace

// A window of a destination: its place in the file, and in the arena.
struct CopyWorker::Piece {
  const CopyTask* task;
  const Region* region;
  Window window;
  i64 head = 0, tail = 0;  // bytes around the items that are written with this piece
  i64 file_offset = 0;     // of its first byte, head included
  i64 item_bytes = 0;      // in the file
  i64 arena = 0;           // offset of its first byte, head included
  i64 staging = 0;         // offset of its first item before the cast
  u32* crc = nullptr;      // receives the CRC-32 of the window's data
  bool slice = false;      // what follows the data, and the sum of the region, come with end_slices()

  i64 data_bytes() const { return window.items.items() * item_bytes; }
  i64 bytes() const { return head + data_bytes() + tail; }
};

// The part of a move that fills a piece, with the source bytes that it reads.
struct CopyWorker::Fetch {
  i32 file;
  i64 begin, end;  // bytes in the source file
  const Region *source, *target;
  Move move;  // clipped to the piece
  u8* to;     // the piece's first item in memory
  i64 to_first;

  // Where the first of its bytes goes, if all others follow it there in their order; null: they do not.
  u8* place() const {
    bool in_order = move.kind != MoveKind::kEqual && move.inner.count == 1 && move.outer.count == 1;
    return in_order ? to + (move.to - to_first) * source->item_bytes : nullptr;
  }
};

Arena::~Arena() { std::free(data_); }

u8* Arena::reserve(i64 bytes) {
  if (bytes > bytes_) {
    std::free(std::exchange(data_, nullptr));
    bytes_ = 0;
    i64 room = round_up(bytes, 1 << 20, "a buffer");
    check_memory_room(room, "the buffers of a copy");
    data_ = static_cast<u8*>(std::aligned_alloc(kPage, static_cast<std::size_t>(room)));
    if (!data_) throw out_of_memory(room, "the buffers of a copy").help("set `max_memory` lower");
    bytes_ = room;
  }
  return data_;
}

void CopyWorker::add_pieces(const CopyTask& task, std::span<const Window> windows,
                            std::vector<Piece>& pieces) {
  for (const Window& w : windows) {
    const Region& r = task.plan.destination(w.destination);
    if (w.items.empty()) continue;
    Frame frame = job_.frame(r);
    Piece p{&task, &r, w, 0, 0, 0, r.item_bytes, 0, 0, nullptr, false};
    if (w.items.begin == 0) p.head = frame.head_bytes;
    if (w.items.end == r.items) p.tail = frame.tail_bytes;
    p.file_offset = r.offset + w.items.begin * r.item_bytes - p.head;
    // Values that a cast may lose are counted, wanted or not.
    if (!task.cast.identity() || out_.wants(r.file, p.file_offset, p.bytes())) pieces.push_back(p);
  }
}

// Example: pieces for bytes 5000..5999 and 6000..6499 of a file, and for 9000..9099: arena offsets 904, 1904
// and 4096 + 808.
void CopyWorker::lay_out(std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.region->file, a.file_offset) < std::tie(b.region->file, b.file_offset);
  });
  i64 end = 0, staged = 0;
  for (std::size_t i = 0; i < pieces.size(); i++) {
    Piece& p = pieces[i];
    bool follows = i > 0 && pieces[i - 1].region->file == p.region->file &&
                   pieces[i - 1].file_offset + pieces[i - 1].bytes() == p.file_offset;
    if (!follows) end = ceil_div(end, kPage) * kPage + p.file_offset % kPage;
    p.arena = end;
    end += p.bytes();
    p.staging = staged;
    if (!p.task->cast.identity())
      staged += ceil_div(p.window.items.items() * dtype_info(p.task->cast.from).bits / 8, 64) * 64;
  }
  arena_.reserve(end);
  staging_.reserve(staged);
}

void CopyWorker::fetch(const std::vector<Piece>& pieces) {
  u8 *arena = arena_.reserve(0), *staging = staging_.reserve(0);
  std::vector<Fetch> fetches, compared;
  std::vector<Move> clipped;
  for (const Piece& p : pieces) {
    bool staged = !p.task->cast.identity();
    u8* to = staged ? staging + p.staging : arena + p.arena + p.head;
    i64 item = staged ? dtype_info(p.task->cast.from).bits / 8 : p.item_bytes;
    for (const PlannedMove& planned : p.task->plan.moves()) {
      if (planned.destination != p.window.destination) continue;
      clipped.clear();
      clip_destination(planned.move, p.window.items, clipped);
      for (const Move& m : clipped) {
        if (m.kind == MoveKind::kZero) {
          apply_move(m, item, {}, {to, p.window.items.begin});
          continue;
        }
        const Region& source = p.task->plan.source(m.slot);
        ItemRun run = m.source();
        (m.kind == MoveKind::kEqual ? compared : fetches)
            .push_back({source.file, source.offset + run.begin * item, source.offset + run.end() * item,
                        &source, p.region, m, to, p.window.items.begin});
      }
    }
  }
  summed_.clear();
  fetch_stretches(fetches);
  std::ranges::sort(summed_, {}, &Summed::data);
  fetch_stretches(compared);  // with what is there now
}

// Each stretch of a file that the fetches cover without a gap is read in blocks, once.
void CopyWorker::fetch_stretches(std::vector<Fetch>& fetches) {
  std::sort(fetches.begin(), fetches.end(), [](const Fetch& a, const Fetch& b) {
    return std::tie(a.file, a.begin, a.end) < std::tie(b.file, b.begin, b.end);
  });
  for (std::size_t i = 0, next; i < fetches.size(); i = next) {
    i64 end = fetches[i].end;
    for (next = i + 1;
         next < fetches.size() && fetches[next].file == fetches[i].file && fetches[next].begin <= end; next++)
      end = std::max(end, fetches[next].end);
    fetch_blocks(std::span(fetches).subspan(i, next - i));
  }
}

// A single fetch whose items stay in their order is read to its place.
void CopyWorker::fetch_blocks(std::span<const Fetch> fetches) {
  const ByteSource& file = job_.source(fetches[0].file);
  i64 at = fetches[0].begin, end = 0;
  for (const Fetch& f : fetches) end = std::max(end, f.end);
  u8* place = fetches.size() == 1 ? fetches[0].place() : nullptr;
  u8* buffer = block_.reserve(kBlockBytes + 2 * kPage);
  std::vector<Move> clipped;
  std::size_t first = 0;
  while (at < end) {
    i64 block_end = std::min(end, ceil_div(at + kBlockBytes - kPage, kPage) * kPage);
    // No item is cut in two: the block ends with a whole item of the region that its end is in.
    for (const Fetch& f : fetches.subspan(first))
      if (f.begin < block_end && block_end < f.end) {
        i64 item = f.source->item_bytes;
        block_end -= (block_end - f.source->offset) % item;
        break;
      }
    u8* data = place ? place + (at - fetches[0].begin) : buffer + at % kPage;
    file.read(at, {data, static_cast<std::size_t>(block_end - at)});
    counts_.bytes_read += block_end - at;
    counts_.reads++;
    while (first < fetches.size() && fetches[first].end <= at) first++;
    if (sums_) sum_block(fetches.subspan(first), at, {data, static_cast<std::size_t>(block_end - at)}, place);
    for (const Fetch& f : fetches.subspan(first)) {
      if (f.begin >= block_end || place) break;
      if (f.end <= at) continue;
      i64 item = f.source->item_bytes;
      ItemRange window{(std::max(at, f.begin) - f.source->offset) / item,
                       (std::min(block_end, f.end) - f.source->offset) / item};
      clipped.clear();
      clip_source(f.move, window, clipped);
      for (const Move& m : clipped) {
        ItemsIn from{data + (f.source->offset - at), 0};
        if (m.kind != MoveKind::kEqual)
          apply_move(m, item, from, {f.to, f.to_first});
        else if (i64 unlike = first_unlike(m, item, from, {f.to, f.to_first}); unlike >= 0)
          job_.refuse_unlike(*f.target, unlike);
      }
    }
    at = block_end;
  }
}

// A block with bytes of several regions is summed region by region, because ReadSums needs pieces that end
// where a record ends.
void CopyWorker::sum_block(std::span<const Fetch> fetches, i64 begin, std::span<const u8> bytes,
                           bool in_place) {
  i32 file = fetches[0].file;
  i64 end = begin + std::ssize(bytes);
  auto part = [&](i64 to) {
    std::size_t n = static_cast<std::size_t>(to - begin);
    u32 sum = sums_->add(file, begin, bytes.first(n));
    // Joining sums takes longer than summing a few bytes again.
    if (in_place && to - begin >= 16 * kPage) summed_.push_back({bytes.data(), to - begin, sum});
    bytes = bytes.subspan(n), begin = to;
  };
  for (const Fetch& f : fetches) {
    if (f.begin >= end) break;
    if (f.source->offset > begin && f.source->offset < end) part(f.source->offset);
  }
  part(end);
}

// Casts values, fills in frames and takes checksums, while the bytes are in the cache.
void CopyWorker::finish(std::vector<Piece>& pieces) {
  u8 *arena = arena_.reserve(0), *staging = staging_.reserve(0);
  for (Piece& p : pieces) {
    u8* data = arena + p.arena + p.head;
    std::span<const u8> bytes(data, static_cast<std::size_t>(p.data_bytes()));
    if (const ItemCast& c = p.task->cast; !c.identity()) {
      i64 items = p.window.items.items();
      counts_.rounded += rounded_items(c, staging + p.staging, items);
      cast_items(c, staging + p.staging, data, items);
      if (lost_ && may_lose(c)) count_losses(p, staging + p.staging, data);
    }
    if (p.head > 0) job_.write_head(*p.region, {data - p.head, static_cast<std::size_t>(p.head)});
    u32 crc = written_ || task_sums_ || job_.frame(*p.region).tail_bytes > 0 ? sum(0, bytes) : 0;
    if (p.crc) *p.crc = crc;
    if (!p.slice && written_ && p.region->tensor >= 0 && p.window.items.end == p.region->items)
      written_->add(WrittenSums::Data{p.region->file, p.region->offset, p.data_bytes(), crc});
    if (p.tail > 0)
      job_.write_tail(*p.region, crc, {data + p.data_bytes(), static_cast<std::size_t>(p.tail)});
  }
}

// Continues a sum, without the bytes of blocks whose sum is known.
u32 CopyWorker::sum(u32 before, std::span<const u8> bytes) const {
  while (!bytes.empty()) {
    auto block = std::ranges::lower_bound(summed_, bytes.data(), {}, &Summed::data);
    bool here = block != summed_.end() && block->data == bytes.data() && block->bytes <= std::ssize(bytes);
    i64 n = here ? block->bytes : std::ssize(bytes);
    if (!here && block != summed_.end() && block->data > bytes.data())
      n = std::min<i64>(n, block->data - bytes.data());
    before =
        here ? crc32_join(before, block->crc32, n) : crc32(before, bytes.first(static_cast<std::size_t>(n)));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return before;
}

void CopyWorker::count_losses(const Piece& p, const u8* from, const u8* to) {
  CastLosses losses = cast_losses(p.task->cast, from, to, p.window.items.items());
  if (losses.infinite + losses.zero == 0) return;
  counts_.infinite += losses.infinite;
  lost_->add(losses.infinite > 0 ? job_.tensor_of(*p.region) : "", losses);
}

void CopyWorker::write(const std::vector<Piece>& pieces) {
  u8* arena = arena_.reserve(0);
  for (std::size_t i = 0, next; i < pieces.size(); i = next) {
    i64 bytes = pieces[i].bytes();
    for (next = i + 1; next < pieces.size() && pieces[next].region->file == pieces[i].region->file &&
                       pieces[next].file_offset == pieces[i].file_offset + bytes;
         next++)
      bytes += pieces[next].bytes();
    out_.write(pieces[i].region->file, pieces[i].file_offset,
               {arena + pieces[i].arena, static_cast<std::size_t>(bytes)});
    if (written_) sum_frames(std::span(pieces).subspan(i, next - i), arena);
    counts_.bytes_written += bytes;
    counts_.writes++;
  }
}

// Adds the checksum of everything but tensor data in pieces that one call wrote.
void CopyWorker::sum_frames(std::span<const Piece> pieces, const u8* arena) {
  i64 begin = pieces.front().file_offset, end = pieces.back().file_offset + pieces.back().bytes();
  i64 rest = 0;
  u32 sum = 0;
  for (const Piece& p : pieces) {
    // A record that is copied as it is (an object) belongs to no tensor: all of it counts as frame.
    i64 head = p.region->tensor >= 0 ? p.head : p.bytes() - p.tail;
    const u8* bytes = arena + p.arena;
    sum = crc32(sum, {bytes, static_cast<std::size_t>(head)});
    sum = crc32(sum, {bytes + p.bytes() - p.tail, static_cast<std::size_t>(p.tail)});
    rest += head + p.tail;
  }
  written_->add(WrittenSums::Stretch{pieces.front().region->file, begin, end, rest, sum});
}

void CopyWorker::process(std::vector<Piece>& pieces) {
  lay_out(pieces);
  fetch(pieces);
  finish(pieces);
  write(pieces);
}

void CopyWorker::run_small(std::span<const CopyTask> tasks, std::span<u32> sums) {
  std::vector<Piece> pieces;
  std::vector<Window> windows;
  std::vector<std::vector<u32>> data(tasks.size());  // the sums of the destinations of each task
  for (std::size_t t = 0; t < tasks.size(); t++) {
    const CopyTask& task = tasks[t];
    windows.clear();
    for (i32 d = 0; d < task.plan.destination_count(); d++)
      windows.push_back({d, {0, task.plan.destination(d).items}});
    const std::size_t before = pieces.size();
    add_pieces(task, windows, pieces);
    if (!task_sums_) continue;
    data[t].resize(static_cast<std::size_t>(task.plan.destination_count()));
    for (std::size_t p = before; p < pieces.size(); p++)
      pieces[p].crc = &data[t][pieces[p].window.destination];
  }
  process(pieces);
  for (std::size_t t = 0; task_sums_ && t < tasks.size(); t++) sums[t] = sum_of_sums(data[t]);
}

void CopyWorker::run_slice(const CopyTask& task, const Slice& slice, std::span<u32> sums) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < slice.size(); i++) {
    std::size_t before = pieces.size();
    add_pieces(task, std::span(&slice[i], 1), pieces);
    if (pieces.size() > before)
      pieces.back().tail = 0, pieces.back().crc = &sums[i], pieces.back().slice = true;
  }
  process(pieces);
}

// A tail is a piece without items: it has the sum of all items, which no slice knows.
void CopyWorker::end_slices(const CopyTask& task, std::span<const u32> sums) {
  std::vector<Piece> tails;
  for (i32 d = 0; d < task.plan.destination_count(); d++) {
    const Region& r = task.plan.destination(d);
    i64 bytes = r.items * r.item_bytes, tail = job_.frame(r).tail_bytes;
    if (written_ && r.tensor >= 0 && r.items > 0)
      written_->add(WrittenSums::Data{r.file, r.offset, bytes, sums[static_cast<std::size_t>(d)]});
    if (r.items > 0 && tail > 0 && out_.wants(r.file, r.offset + bytes, tail))
      tails.push_back({&task,
                       &r,
                       {d, {r.items, r.items}},
                       0,
                       tail,
                       r.offset + bytes,
                       r.item_bytes,
                       0,
                       0,
                       nullptr,
                       false});
  }
  lay_out(tails);
  for (const Piece& p : tails)
    job_.write_tail(*p.region, sums[static_cast<std::size_t>(p.window.destination)],
                    {arena_.reserve(0) + p.arena, static_cast<std::size_t>(p.tail)});
  write(tails);
}

void CopyWorker::run_window(const CopyTask& task, const Window& window) {
  std::vector<Piece> pieces;
  add_pieces(task, std::span(&window, 1), pieces);
  process(pieces);
}

}  // namespace mckpt::impl
