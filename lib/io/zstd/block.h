// A compressed block of Zstandard: literals, and sequences that say where literals go and what is copied from
// before. Values that one block defines (codes, last distances) can be used by the next. Private to io/zstd.
#pragma once

#include <optional>
#include <vector>

#include "io/zstd/entropy.h"

namespace mckpt::impl {

// Decodes the blocks of one frame, one after the other.
class ZstdBlocks {
 public:
  // `out` gets the content; copies go back to `begin` of it at most.
  ZstdBlocks(std::vector<u8>& out, i64 most_bytes) : out_(out), begin_(out.size()), most_bytes_(most_bytes) {}

  void compressed(std::span<const u8> block);
  void raw(std::span<const u8> bytes);
  void repeated(u8 byte, std::size_t count);
  std::span<const u8> content() const { return std::span(out_).subspan(begin_); }

 private:
  // The three codes of sequences: how many literals, which distance, how many bytes are copied.
  enum Field : std::size_t { kLiterals, kDistance, kMatch };

  std::size_t read_literals(std::span<const u8> block);
  void decode_literals(std::span<const u8> coded, bool four, std::size_t bytes);
  void read_sequences(std::span<const u8> block);
  std::size_t read_table(Field field, u8 mode, std::span<const u8> bytes);
  i64 distance_of(u64 value, bool no_literals);
  void append(std::span<const u8> bytes);
  void copy(i64 distance, std::size_t count);
  void make_room(std::size_t count);

  std::vector<u8>& out_;
  const std::size_t begin_;
  const i64 most_bytes_;
  std::vector<u8> literals_;
  std::optional<HuffmanTable> huffman_;
  std::optional<FseTable> tables_[3];
  i64 last_[3] = {1, 4, 8};  // distances, the latest first
};

}  // namespace mckpt::impl
