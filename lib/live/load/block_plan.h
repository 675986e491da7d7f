// BlockPlan: what loading reads. The source files are divided into blocks of 4 MiB; an item belongs to the
// block of its first byte. For every block with items for this rank, the plan lists the places of the items,
// so that a block is read once, by any rank, and its items are copied to their places from wherever the block
// is.
//
//   file 0   | block 0 | block 1 | block 2 | ...        this rank needs items in blocks 1 and 2
//   block 1  --copies(data)-->  rows 5-9 of w to device memory 0x..., rows 0-3 of v to 0x...
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "core/items/item_cast.h"
#include "core/items/move.h"

namespace mckpt::impl {

class CopyJob;
struct CopyTask;
struct ItemCopy;

// A block of a source file. Blocks are ordered by file and place; packed() keeps the order.
struct BlockId {
  // Small enough that a block is still in the processor's cache when it is copied on, large enough that the
  // number of calls does not matter.
  static constexpr i64 kBytes = 4 << 20;
  static constexpr i64 kTailBytes = 16;  // of the next block, for an item that crosses the border

  i32 file = 0;
  i64 index = 0;

  i64 begin() const { return index * kBytes; }
  u64 packed() const { return static_cast<u64>(file) << 40 | static_cast<u64>(index); }
  static BlockId unpacked(u64 id) {
    return {static_cast<i32>(id >> 40), static_cast<i64>(id & 0xff'ffff'ffff)};
  }
  friend bool operator==(const BlockId&, const BlockId&) = default;
};

// The plan of one rank. It keeps no reference to the job. const functions are thread-safe.
class BlockPlan {
 public:
  // Returns the address in device memory at which a destination's file begins.
  using Address = std::function<u8*(i32 file)>;
  // Throws kReadFailed if a source is beyond the end of its file.
  BlockPlan(const CopyJob& job, const Address& address);

  // The blocks with items for this rank, in ascending order.
  std::span<const BlockId> blocks() const { return blocks_; }
  // Whether an item of a block of this plan has bytes behind the block's end.
  bool crosses_borders() const { return crosses_borders_; }
  // Appends the copies of the items of blocks()[block]. `data`: the address of the block's first byte on the
  // device.
  void copies(i64 block, const u8* data, std::vector<ItemCopy>& out) const;

  struct Stretch {
    u8* at = nullptr;
    i64 bytes = 0;
  };
  // The padding of the destinations, which has no source and is filled with zeros.
  std::span<const Stretch> zeros() const { return zeros_; }
  // Values that are the constant of a cast, without a source.
  struct Constant {
    u8* at = nullptr;
    std::vector<u8> bytes;
  };
  std::span<const Constant> constants() const { return constants_; }

 private:
  // A move from a file into memory.
  struct Fetch {
    i32 file, cast;
    i64 source;  // the byte of the file at which item 0 of the region begins
    Move move;
    u8* to;  // the address of item 0 of the destination
  };
  struct Use {
    BlockId block;
    i32 fetch;
  };
  void add_task(const CopyTask& task, const Address& address);
  void check_inside(const Fetch& fetch, i64 file_bytes) const;
  void add_zeros(const Move& move, const ItemCast& cast, u8* to);
  std::vector<Use> uses();
  void clip(const Fetch& fetch, BlockId block, std::vector<Move>& out) const;

  std::vector<ItemCast> casts_;
  std::vector<Fetch> fetches_;
  std::vector<BlockId> blocks_;
  std::vector<i64> begins_;  // of each block in used_, and the end
  std::vector<i32> used_;    // fetches, block by block
  std::vector<Stretch> zeros_;
  std::vector<Constant> constants_;
  bool crosses_borders_ = false;
};

}  // namespace mckpt::impl
