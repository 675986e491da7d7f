// Builds the tables of FSE and Huffman codes. Every number of a stream is checked before it is an index.
#include "io/zstd/entropy.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

constexpr int kMostHuffmanBits = 11, kMostWeightLog = 6;
constexpr std::size_t kMostWeights = 255;  // the last one is not written

// The weights of a Huffman code, written with two FSE states in turn until the bits are used up.
std::vector<u8> fse_weights(std::span<const u8> bytes) {
  std::size_t taken = 0;
  FseTable table = FseTable::read(bytes, kMostWeightLog, kMostHuffmanBits + 2, taken);
  BackwardBits bits(bytes.subspan(taken));
  FseState states[] = {{table, bits}, {table, bits}};
  std::vector<u8> out;
  for (std::size_t turn = 0; bits.left() >= 0 && out.size() <= kMostWeights; turn ^= 1) {
    out.push_back(states[turn].symbol());
    states[turn].next(bits);
    if (bits.left() < 0) out.push_back(states[turn ^ 1].symbol());
  }
  return out;
}

}  // namespace

FseTable::FseTable(std::span<const i32> counts, int log) : log_(log) {
  const u32 size = u32{1} << log;
  states_.resize(size);
  std::vector<u16> next(counts.size());
  u32 high = size;
  for (std::size_t s = 0; s < counts.size(); s++) {
    next[s] = static_cast<u16>(counts[s] < 0 ? 1 : counts[s]);
    if (counts[s] < 0) states_[--high].symbol = static_cast<u8>(s);
  }
  // The other symbols are dealt over the table in steps that reach every place once.
  const u32 step = (size >> 1) + (size >> 3) + 3, mask = size - 1;
  u32 at = 0;
  for (std::size_t s = 0; s < counts.size(); s++)
    for (i32 i = 0; i < counts[s]; i++) {
      states_[at].symbol = static_cast<u8>(s);
      do at = (at + step) & mask;
      while (at >= high);
    }
  for (State& s : states_) {
    u32 number = next[s.symbol]++;
    s.bits = static_cast<u8>(log - highest_bit(number));
    s.base = static_cast<u16>((number << s.bits) - size);
  }
}

FseTable FseTable::read(std::span<const u8> bytes, int most_log, std::size_t most_symbols,
                        std::size_t& taken) {
  ForwardBits bits(bytes);
  const int log = static_cast<int>(bits.read(4)) + 5;
  if (log > most_log) throw_bad_zstd("a table is larger than allowed");
  i32 remaining = 1 << log;
  std::vector<i32> counts;
  while (remaining > 0) {
    // Counts up to `remaining` are written in as few bits as can tell them apart: small ones in one bit less.
    const int width = highest_bit(static_cast<u64>(remaining) + 1) + 1;
    i32 value = static_cast<i32>(bits.read(width));
    const i32 low_mask = (1 << (width - 1)) - 1, small = (1 << width) - 1 - (remaining + 1);
    if ((value & low_mask) < small)
      bits.back(1), value &= low_mask;
    else if (value > low_mask)
      value -= small;
    const i32 count = value - 1;
    remaining -= count < 0 ? 1 : count;
    counts.push_back(static_cast<i32>(count));
    for (u32 zeros = count == 0 ? 3 : 0; zeros == 3;) {
      zeros = bits.read(2);
      counts.insert(counts.end(), zeros, 0);
    }
    if (counts.size() > most_symbols) throw_bad_zstd("a table has too many symbols");
  }
  if (remaining < 0) throw_bad_zstd("the counts of a table do not add up");
  taken = bits.bytes_read();
  return FseTable(counts, log);
}

u8 FseTable::highest_symbol() const { return std::ranges::max(states_, {}, &State::symbol).symbol; }

// The last weight is what is missing to a power of two.
HuffmanTable HuffmanTable::read(std::span<const u8> bytes, std::size_t& taken) {
  if (bytes.empty()) throw_bad_zstd("a Huffman code is missing");
  const std::size_t head = bytes[0], direct = head < 128 ? 0 : head - 127;
  taken = 1 + (direct > 0 ? (direct + 1) / 2 : head);
  if (taken > bytes.size()) throw_bad_zstd("a Huffman code goes on after its end");
  std::vector<u8> weights;
  for (std::size_t i = 0; i < direct; i++)
    weights.push_back(static_cast<u8>(i % 2 == 0 ? bytes[1 + i / 2] >> 4 : bytes[1 + i / 2] & 15));
  if (direct == 0) weights = fse_weights(bytes.subspan(1, head));
  if (weights.size() > kMostWeights) throw_bad_zstd("a Huffman code has too many symbols");
  u64 sum = 0;
  for (u8 w : weights) {
    if (w > kMostHuffmanBits + 1) throw_bad_zstd("a Huffman code is longer than allowed");
    sum += w > 0 ? u64{1} << (w - 1) : 0;
  }
  if (sum == 0) throw_bad_zstd("a Huffman code is empty");
  const u64 missing = (u64{1} << (highest_bit(sum) + 1)) - sum;
  if (!std::has_single_bit(missing)) throw_bad_zstd("the weights of a Huffman code do not add up");
  weights.push_back(static_cast<u8>(highest_bit(missing) + 1));
  return HuffmanTable(weights);
}

// Codes of equal length follow each other in the order of their symbols, the longest codes first.
HuffmanTable::HuffmanTable(std::span<const u8> weights) {
  u64 sum = 0;
  for (u8 w : weights) sum += w > 0 ? u64{1} << (w - 1) : 0;
  most_bits_ = highest_bit(sum);
  if (most_bits_ > kMostHuffmanBits) throw_bad_zstd("a Huffman code is longer than allowed");
  for (int weight = 1; weight <= most_bits_; weight++)
    for (std::size_t s = 0; s < weights.size(); s++)
      if (weights[s] == weight)
        codes_.insert(codes_.end(), std::size_t{1} << (weight - 1),
                      Code{static_cast<u8>(s), static_cast<u8>(most_bits_ + 1 - weight)});
  if (codes_.size() != std::size_t{1} << most_bits_) throw_bad_zstd("a Huffman code does not add up");
}

void HuffmanTable::decode(std::span<const u8> stream, std::span<u8> out) const {
  BackwardBits bits(stream);
  const u32 mask = (u32{1} << most_bits_) - 1;
  u32 state = bits.read(most_bits_);
  for (u8& symbol : out) {
    const Code code = codes_[state];
    symbol = code.symbol;
    state = ((state << code.bits) & mask) + bits.read(code.bits);
  }
  // Bits that were read ahead of the last symbol are not there.
  if (bits.left() != -most_bits_) throw_bad_zstd("a stream of literals has another length than it says");
}

}  // namespace mckpt::impl
