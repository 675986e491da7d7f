// Who reads which block: against what must hold of every way to share them out.
#include "live/load/block_share.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace mckpt::impl {
namespace {

// All ranks' shares carried out: what every rank ends up with, and how often a block is read.
struct Outcome {
  std::vector<std::multiset<u64>> has;
  std::map<u64, int> reads;
  std::vector<i64> blocks_read;
};

Outcome carry_out(const std::vector<std::vector<u64>>& needed, i64 round_blocks) {
  std::size_t ranks = needed.size();
  Outcome out{std::vector<std::multiset<u64>>(ranks), {}, {}};
  std::vector<BlockShare> shares;
  for (std::size_t r = 0; r < ranks; r++) shares.emplace_back(needed, static_cast<int>(r), round_blocks);
  auto block = [&](std::size_t r, i64 index) { return needed[r][static_cast<std::size_t>(index)]; };
  for (std::size_t r = 0; r < ranks; r++) {
    EXPECT_EQ(shares[r].rounds().size(), shares[0].rounds().size());
    for (i64 b : shares[r].own()) out.has[r].insert(block(r, b)), out.reads[block(r, b)]++;
    out.blocks_read.push_back(shares[r].blocks_read());
  }
  for (std::size_t k = 0; k < shares[0].rounds().size(); k++) {
    std::map<std::pair<int, int>, std::vector<u64>> sent, received;  // by pair of ranks, in order
    for (std::size_t r = 0; r < ranks; r++) {
      const BlockShare::Round& round = shares[r].rounds()[k];
      int me = static_cast<int>(r);
      EXPECT_LE(std::ssize(round.sends), round_blocks);
      EXPECT_LE(std::ssize(round.receives), round_blocks);
      for (const BlockShare::Send& s : round.sends) {
        out.has[r].insert(block(r, s.block)), out.reads[block(r, s.block)]++;
        EXPECT_FALSE(s.to.empty());
        for (int to : s.to) sent[{me, to}].push_back(block(r, s.block));
      }
      for (const BlockShare::Receive& x : round.receives) {
        out.has[r].insert(block(r, x.block));
        received[{x.from, me}].push_back(block(r, x.block));
      }
    }
    EXPECT_EQ(sent, received) << "round " << k;
  }
  return out;
}

void expect_shared_right(const std::vector<std::vector<u64>>& needed, i64 round_blocks) {
  Outcome out = carry_out(needed, round_blocks);
  std::set<u64> all;
  for (std::size_t r = 0; r < needed.size(); r++) {
    EXPECT_EQ(out.has[r], std::multiset<u64>(needed[r].begin(), needed[r].end())) << "rank " << r;
    all.insert(needed[r].begin(), needed[r].end());
  }
  EXPECT_EQ(out.reads.size(), all.size());
  for (auto [block, times] : out.reads) EXPECT_EQ(times, 1) << "block " << block;
}

TEST(BlockShare, EveryBlockIsReadOnceAndComesToAllWhoNeedIt) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; round++) {
    std::vector<std::vector<u64>> needed(1 + random() % 6);
    unsigned density = 1 + random() % 4;
    for (std::vector<u64>& of : needed)
      for (u64 b = 0; b < 60; b++)
        if (random() % 4 < density) of.push_back(b * 7);
    expect_shared_right(needed, 1 + random() % 5);
  }
}

TEST(BlockShare, WhatAllNeedIsSharedEvenly) {
  std::vector<u64> all;
  for (u64 b = 0; b < 100; b++) all.push_back(b);
  Outcome out = carry_out({all, all, all, all}, 8);
  EXPECT_EQ(out.blocks_read, (std::vector<i64>{25, 25, 25, 25}));
}

TEST(BlockShare, WhatOneNeedsIsItsOwn) {
  BlockShare share(std::vector<std::vector<u64>>{{1, 2}, {3}, {}}, 0, 4);
  EXPECT_EQ(std::vector<i64>(share.own().begin(), share.own().end()), (std::vector<i64>{0, 1}));
  EXPECT_TRUE(share.rounds().empty());
  EXPECT_TRUE(BlockShare(std::vector<std::vector<u64>>{{}, {}}, 1, 4).rounds().empty());
}

}  // namespace
}  // namespace mckpt::impl
