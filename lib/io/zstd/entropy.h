// The two codes of Zstandard: FSE (a state machine whose states are symbols, RFC 8878 section 4.1) and
// Huffman (4.2). Private to io/zstd.
#pragma once

#include <vector>

#include "io/zstd/bits.h"

namespace mckpt::impl {

// The table of an FSE code: what each state stands for, and how the next state is read.
class FseTable {
 public:
  struct State {
    u16 base = 0;
    u8 symbol = 0, bits = 0;  // the next state is `base` and as many bits
  };

  // From how often each symbol occurs, of 1 << log in all; -1: less than once.
  FseTable(std::span<const i32> counts, int log);
  // The table of one symbol that never changes.
  explicit FseTable(u8 symbol) : log_(0), states_{State{0, symbol, 0}} {}
  // Reads the counts from the front of the bytes, and says how many bytes they take up.
  static FseTable read(std::span<const u8> bytes, int most_log, std::size_t most_symbols, std::size_t& taken);

  int log() const { return log_; }
  const State& operator[](u32 state) const { return states_[state]; }
  // The highest symbol of all states.
  u8 highest_symbol() const;

 private:
  int log_;
  std::vector<State> states_;
};

// A position in a table, moved by the bits of a stream.
class FseState {
 public:
  FseState(const FseTable& table, BackwardBits& bits) : table_(&table), state_(bits.read(table.log())) {}
  u8 symbol() const { return (*table_)[state_].symbol; }
  void next(BackwardBits& bits) {
    const FseTable::State& s = (*table_)[state_];
    state_ = s.base + bits.read(s.bits);
  }

 private:
  const FseTable* table_;
  u32 state_;
};

// A Huffman code for bytes, at most 11 bits long.
class HuffmanTable {
 public:
  // Reads the description at the front of the bytes, and says how many bytes it takes up.
  static HuffmanTable read(std::span<const u8> bytes, std::size_t& taken);
  // Fills `out` from a stream that has exactly its symbols.
  void decode(std::span<const u8> stream, std::span<u8> out) const;

 private:
  explicit HuffmanTable(std::span<const u8> weights);
  struct Code {
    u8 symbol = 0, bits = 0;
  };
  int most_bits_ = 0;
  std::vector<Code> codes_;  // by the next most_bits_ bits
};

}  // namespace mckpt::impl
