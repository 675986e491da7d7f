// Sorts the moves of a job by the blocks that they read:
//
//   moves of all tasks  -->  fetches (file byte, move, address)  -->  (block, fetch) pairs, sorted  -->  by block
//
// copies() then clips the fetches of a block to the block, so that a move that spans ten blocks is cut when
// it is used.
#include "live/load/block_plan.h"
#include "core/base/error.h"
#include "core/items/item_run.h"
#include "core/items/plan.h"
#include "io/copy/job.h"
#include "io/file/file.h"
#include "live/device/device.h"

#include <algorithm>
#include <tuple>

namespace mckpt::impl {
BlockPlan::BlockPlan(const CopyJob& job, const Address& address) {
  for (i64 t = 0; t < job.task_count(); t++) add_task(job.task(t), address);
  for (const Fetch& fetch : fetches_) check_inside(fetch, job.source(fetch.file).size());
  std::vector<Use> all = uses();
  std::ranges::sort(all, {}, [](const Use& u) { return std::tuple(u.block.packed(), u.fetch); });
  for (const Use& use : all) {
    if (blocks_.empty() || blocks_.back() != use.block) {
      blocks_.push_back(use.block);
      begins_.push_back(std::ssize(used_));
    }
    used_.push_back(use.fetch);
  }
  begins_.push_back(std::ssize(used_));
}

void BlockPlan::add_task(const CopyTask& task, const Address& address) {
  auto known = std::ranges::find(casts_, task.cast);
  i32 cast = static_cast<i32>(known - casts_.begin());
  if (known == casts_.end()) casts_.push_back(task.cast);
  for (const PlannedMove& planned : task.plan.moves()) {
    const Region& to = task.plan.destination(planned.destination);
    u8* first = address(to.file) + to.offset;
    if (planned.move.kind == MoveKind::kZero) {
      add_zeros(planned.move, task.cast, first);
      continue;
    }
    const Region& from = task.plan.source(planned.move.slot);
    fetches_.push_back({from.file, cast, from.offset, planned.move, first});
  }
}

// Throws kReadFailed if the move reads beyond the end of its file. The loader cannot see this: it cuts the
// last block off at the end of the file.
void BlockPlan::check_inside(const Fetch& fetch, i64 file_bytes) const {
  i64 item = dtype_bytes(casts_[fetch.cast].from, 1);
  i64 end = fetch.source + fetch.move.source().end() * item;
  if (end > file_bytes)
    throw Error(Code::kReadFailed, "a tensor passes the end of its file")
        .offset(end)
        .expected(cat("at most ", file_bytes, " bytes"))
        .found(end);
}

// Lists the stretches of a move that writes zeros, or what the cast adds to them.
void BlockPlan::add_zeros(const Move& m, const ItemCast& cast, u8* to) {
  i64 item = dtype_bytes(cast.to, 1);
  bool constant = cast.add_before != 0 || cast.add_after != 0;
  for (i64 o = 0; o < m.outer.count; o++)
    for (i64 i = 0; i < m.inner.count; i++) {
      u8* at = to + (m.to + o * m.outer.to_stride + i * m.inner.to_stride) * item;
      if (!constant) {
        zeros_.push_back({at, m.length * item});
        continue;
      }
      const std::vector<u8> zeros(static_cast<std::size_t>(dtype_bytes(cast.from, m.length)));
      constants_.push_back({at, {}});
      std::vector<u8>& values = constants_.back().bytes;
      values.resize(static_cast<std::size_t>(m.length * item));
      cast_items(cast, zeros.data(), values.data(), m.length);
    }
}

// The (block, fetch) pairs. A move with strides may use only some of the blocks between its first and last
// item.
std::vector<BlockPlan::Use> BlockPlan::uses() {
  std::vector<Use> all;
  std::vector<Move> parts;
  for (i32 f = 0; f < static_cast<i32>(fetches_.size()); f++) {
    const Fetch& fetch = fetches_[f];
    i64 item = dtype_bytes(casts_[fetch.cast].from, 1);
    ItemRun run = fetch.move.source();
    BlockId block{fetch.file, (fetch.source + run.begin * item) / BlockId::kBytes};
    crosses_borders_ |= fetch.source % item != 0;
    for (; block.begin() < fetch.source + run.end() * item; block.index++) {
      parts.clear();
      clip(fetch, block, parts);
      if (!parts.empty()) all.push_back({block, f});
    }
  }
  return all;
}

// Appends the parts of a fetch whose items begin in the block.
void BlockPlan::clip(const Fetch& fetch, BlockId block, std::vector<Move>& out) const {
  i64 item = dtype_bytes(casts_[fetch.cast].from, 1);
  auto first_item_from = [&](i64 byte) { return ceil_div(std::max<i64>(byte - fetch.source, 0), item); };
  clip_source(fetch.move, {first_item_from(block.begin()), first_item_from(block.begin() + BlockId::kBytes)},
              out);
}

void BlockPlan::copies(i64 block, const u8* data, std::vector<ItemCopy>& out) const {
  std::size_t b = static_cast<std::size_t>(block);
  std::vector<Move> parts;
  for (i64 u = begins_[b]; u < begins_[b + 1]; u++) {
    const Fetch& fetch = fetches_[used_[u]];
    const ItemCast& cast = casts_[fetch.cast];
    parts.clear();
    clip(fetch, blocks_[b], parts);
    for (const Move& m : parts)
      out.push_back({data + (fetch.source + m.from * dtype_bytes(cast.from, 1) - blocks_[b].begin()),
                     fetch.to + m.to * dtype_bytes(cast.to, 1), m.length, m.inner, m.outer, cast});
  }
}

}  // namespace mckpt::impl
