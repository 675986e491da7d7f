// BlockShare: which rank reads which block of the source files, so that no block is read twice. A block that
// only one rank needs is read by that rank. A block that several need is read by the one of them that has
// least to read so far, and is sent from there to the others, round by round:
//
//   needs     rank 0: A B C     rank 1: B C D            A: read by 0     D: read by 1     (own)
//   round 0   B: read by 1, sent to 0; C: read by 0, sent to 1
//
// All ranks compute the same assignment from the same lists, so only the lists are exchanged.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// The assignment, as one rank sees it. A value.
class BlockShare {
 public:
  // A block that this rank sends in a round, with the ranks that it goes to; and a block that it receives.
  struct Send {
    i64 block = 0;  // an index into this rank's list
    std::vector<int> to;
  };
  struct Receive {
    i64 block = 0;
    int from = 0;
  };
  struct Round {
    std::vector<Send> sends;
    std::vector<Receive> receives;
  };
  // `needed`: by rank, the blocks that it needs, ascending, as packed numbers. `round_blocks`: the most
  // blocks that a rank sends, and that it receives, in a round.
  BlockShare(std::span<const std::vector<u64>> needed, int rank, i64 round_blocks);

  std::span<const i64> own() const { return own_; }  // blocks that no other rank needs
  std::span<const Round> rounds() const { return rounds_; }
  i64 blocks_read() const { return blocks_read_; }  // by this rank

 private:
  std::vector<i64> own_;
  std::vector<Round> rounds_;
  i64 blocks_read_ = 0;
};

}  // namespace mckpt::impl
