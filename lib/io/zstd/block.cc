// Decodes blocks by RFC 8878, section 3.1.1. Numbers in a block are at most 17 bits of literals, 31 bits of a
// distance; each is checked against what is there.
#include "io/zstd/block.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostBlock = std::size_t{128} << 10;

// A code stands for a base and so many bits more.
struct Length {
  u32 base;
  u8 bits;
};
constexpr Length kLiteralLengths[] = {
    {0, 0},     {1, 0},      {2, 0},      {3, 0},     {4, 0},   {5, 0},     {6, 0},     {7, 0},
    {8, 0},     {9, 0},      {10, 0},     {11, 0},    {12, 0},  {13, 0},    {14, 0},    {15, 0},
    {16, 1},    {18, 1},     {20, 1},     {22, 1},    {24, 2},  {28, 2},    {32, 3},    {40, 3},
    {48, 4},    {64, 6},     {128, 7},    {256, 8},   {512, 9}, {1024, 10}, {2048, 11}, {4096, 12},
    {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};
constexpr Length kMatchLengths[] = {{35, 1},     {37, 1},     {39, 1},    {41, 1},    {43, 2},    {47, 2},
                                    {51, 3},     {59, 3},     {67, 4},    {83, 4},    {99, 5},    {131, 7},
                                    {259, 8},    {515, 9},    {1027, 10}, {2051, 11}, {4099, 12}, {8195, 13},
                                    {16387, 14}, {32771, 15}, {65539, 16}};
constexpr u8 kPlainMatches = 32;  // codes below are 3 bytes and as many more

// How often each code occurs where a block does not say it (RFC 8878, section 3.1.1.3.2.2).
constexpr i32 kLiteralCounts[] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                  2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
constexpr i32 kDistanceCounts[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
constexpr i32 kMatchCounts[] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};

struct Code {
  std::span<const i32> counts;
  int log, most_log;
  std::size_t symbols;
};
constexpr Code kCodes[] = {{kLiteralCounts, 6, 9, 36}, {kDistanceCounts, 5, 8, 32}, {kMatchCounts, 6, 9, 53}};

Length match_length(u8 code) {
  return code < kPlainMatches ? Length{code + 3u, 0} : kMatchLengths[code - kPlainMatches];
}

u32 little_endian(std::span<const u8> bytes) {
  u32 out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | bytes[i];
  return out;
}

std::span<const u8> taken(std::span<const u8>& from, std::size_t bytes) {
  if (bytes > from.size()) throw_bad_zstd("a block goes on after its end");
  std::span<const u8> out = from.first(bytes);
  from = from.subspan(bytes);
  return out;
}

}  // namespace

void ZstdBlocks::make_room(std::size_t count) {
  if (static_cast<i64>(count) > most_bytes_ - std::ssize(out_))
    throw_bad_zstd("the stream holds more than its record needs");
}

void ZstdBlocks::raw(std::span<const u8> bytes) { append(bytes); }

void ZstdBlocks::append(std::span<const u8> bytes) {
  make_room(bytes.size());
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

void ZstdBlocks::repeated(u8 byte, std::size_t count) {
  make_room(count);
  out_.insert(out_.end(), count, byte);
}

// A copy may overlap itself, so that a short distance repeats bytes.
void ZstdBlocks::copy(i64 distance, std::size_t count) {
  if (distance <= 0 || distance > std::ssize(content())) throw_bad_zstd("a copy begins before the frame");
  make_room(count);
  std::size_t to = out_.size(), from = to - static_cast<std::size_t>(distance);
  out_.resize(to + count);
  if (static_cast<std::size_t>(distance) >= count)
    std::copy_n(out_.begin() + static_cast<std::ptrdiff_t>(from), count,
                out_.begin() + static_cast<std::ptrdiff_t>(to));
  else
    for (std::size_t i = 0; i < count; i++) out_[to + i] = out_[from + i];
}

void ZstdBlocks::compressed(std::span<const u8> block) {
  block = block.subspan(read_literals(block));
  read_sequences(block);
}

// Reads the literals at the front of the block, and returns how many bytes they take up there.
std::size_t ZstdBlocks::read_literals(std::span<const u8> block) {
  std::span<const u8> rest = block;
  if (rest.empty()) throw_bad_zstd("a block is empty");
  const u8 type = rest[0] & 3, form = rest[0] >> 2 & 3;
  if (type < 2) {
    // As they are, or one byte repeated: the size has 5, 12 or 20 bits.
    const std::size_t head = form == 1 ? 2 : form == 3 ? 3 : 1;
    const std::size_t bytes = little_endian(taken(rest, head)) >> (head == 1 ? 3 : 4);
    if (bytes > kMostBlock) throw_bad_zstd("a block has too many literals");
    std::span<const u8> stored = taken(rest, type == 0 ? bytes : 1);
    if (type == 0)
      literals_.assign(stored.begin(), stored.end());
    else
      literals_.assign(bytes, stored[0]);
    return block.size() - rest.size();
  }
  const std::size_t head = form < 2 ? 3 : form + 2u;
  const int size_bits = form < 2 ? 10 : form == 2 ? 14 : 18;
  std::span<const u8> header = taken(rest, head);
  const std::size_t bytes = bits_at(header, 4, size_bits), coded = bits_at(header, 4 + size_bits, size_bits);
  if (bytes > kMostBlock) throw_bad_zstd("a block has too many literals");
  std::span<const u8> streams = taken(rest, coded);
  if (type == 2) {
    std::size_t described = 0;
    huffman_ = HuffmanTable::read(streams, described);
    streams = streams.subspan(described);
  }
  decode_literals(streams, form != 0, bytes);
  return block.size() - rest.size();
}

// Literals are in one stream or in four, three of which are equally long.
void ZstdBlocks::decode_literals(std::span<const u8> coded, bool four, std::size_t bytes) {
  if (!huffman_) throw_bad_zstd("a block uses a Huffman code that no block before has");
  literals_.resize(bytes);
  std::span<u8> out = literals_;
  if (!four) return huffman_->decode(coded, out);
  std::span<const u8> sizes = taken(coded, 6);
  const std::size_t each = (bytes + 3) / 4;
  if (each * 3 > bytes) throw_bad_zstd("a block has too few literals for four streams");
  for (std::size_t i = 0; i < 3; i++)
    huffman_->decode(taken(coded, little_endian(sizes.subspan(2 * i, 2))), out.subspan(i * each, each));
  huffman_->decode(coded, out.subspan(3 * each));
}

// Sets the code of a field: the usual one, one symbol, described in the block, or as in the block before.
// Returns how many bytes are taken.
std::size_t ZstdBlocks::read_table(Field field, u8 mode, std::span<const u8> bytes) {
  const Code& code = kCodes[field];
  std::size_t used = 0;
  if (mode == 0) tables_[field] = FseTable(code.counts, code.log);
  if (mode == 1) tables_[field] = FseTable(taken(bytes, used = 1)[0]);
  if (mode == 2) tables_[field] = FseTable::read(bytes, code.most_log, code.symbols, used);
  if (!tables_[field]) throw_bad_zstd("a block uses a code that no block before has");
  if (tables_[field]->highest_symbol() >= code.symbols) throw_bad_zstd("a code is too large");
  return used;
}

// Values 1 to 3 are distances that were used before; where no literal comes first, the latest one would have
// been part of the copy before, so they count from the second.
i64 ZstdBlocks::distance_of(u64 value, bool no_literals) {
  i64 distance = static_cast<i64>(value) - 3;
  std::size_t from = 2;  // the place whose distance is forgotten
  if (value <= 3) {
    const std::size_t place = static_cast<std::size_t>(value) - 1 + no_literals;
    distance = place < 3 ? last_[place] : last_[0] - 1;
    from = std::min<std::size_t>(place, 2);
  }
  for (std::size_t i = from; i > 0; i--) last_[i] = last_[i - 1];
  return last_[0] = distance;
}

void ZstdBlocks::read_sequences(std::span<const u8> block) {
  std::size_t count = taken(block, 1)[0];
  if (count == 255)
    count = little_endian(taken(block, 2)) + 0x7f00;
  else if (count >= 128)
    count = (count - 128) << 8 | taken(block, 1)[0];
  std::span<const u8> literals = literals_;
  if (count > 0) {
    const u8 modes = taken(block, 1)[0];
    if ((modes & 3) != 0) throw_bad_zstd("a block uses a form that is reserved");
    for (Field field : {kLiterals, kDistance, kMatch})
      block = block.subspan(read_table(field, modes >> (6 - 2 * field) & 3, block));
    BackwardBits bits(block);
    FseState literal(*tables_[kLiterals], bits), place(*tables_[kDistance], bits),
        match(*tables_[kMatch], bits);
    for (std::size_t i = 0; i < count; i++) {
      const u8 distance_bits = place.symbol();
      const u64 distance = (u64{1} << distance_bits) + bits.read(distance_bits);
      const Length copied = match_length(match.symbol()), fresh = kLiteralLengths[literal.symbol()];
      const std::size_t match_bytes = copied.base + bits.read(copied.bits);
      const std::size_t literal_bytes = fresh.base + bits.read(fresh.bits);
      append(taken(literals, literal_bytes));
      copy(distance_of(distance, literal_bytes == 0), match_bytes);
      if (i + 1 == count) break;
      literal.next(bits), match.next(bits), place.next(bits);
    }
    if (bits.left() != 0) throw_bad_zstd("the sequences of a block have another length than it says");
  } else if (!block.empty()) {
    throw_bad_zstd("a block goes on after its end");
  }
  append(literals);
}

}  // namespace mckpt::impl
