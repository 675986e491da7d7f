// BlockShare: the rank that reads each block of the source files, so that each is read once by all ranks
// together. A block that only one rank needs is read by that rank. A block that several need is read by the
// one of them that has least to read so far, and is sent from there to the others, round by round:
//
//   round 0: ranks send and receive some blocks       round 1: ...
//
// All ranks compute the same from the same lists, so that only the lists are exchanged.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class BlockShare {
 public:
  // Of a round: a block of the plan with the ranks that it goes to, or the one that it comes from.
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
  // `needed`: by rank, the blocks that it needs, ascending, as numbers that mean the same to all.
  // `round_blocks`: how many a rank sends, and receives, in a round at most.
  BlockShare(std::span<const std::vector<u64>> needed, int rank, i64 round_blocks);

  std::span<const i64> own() const { return own_; }  // that nobody else needs
  std::span<const Round> rounds() const { return rounds_; }
  i64 blocks_read() const { return blocks_read_; }  // by this rank

 private:
  std::vector<i64> own_;
  std::vector<Round> rounds_;
  i64 blocks_read_ = 0;
};

}  // namespace mckpt::impl
