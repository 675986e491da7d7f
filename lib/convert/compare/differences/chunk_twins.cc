// Groups chunks of experts by key without number, box and checksum; the second chunk of a group is compared
// with the first byte by byte.
#include "convert/compare/differences/chunk_twins.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "convert/keys/key_table.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/record.h"
#include "io/file/bytes.h"
#include "io/file/file.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPiece = 1 << 20;

// The key with "#" in place of the expert's number, which is the last number in the key.
std::string without_number(std::string_view key) {
  auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t end = key.size();
  while (end > 0 && !digit(key[end - 1])) end--;
  std::size_t begin = end;
  while (begin > 0 && digit(key[begin - 1])) begin--;
  return cat(key.substr(0, begin), "#", key.substr(end));
}

InputFile file_of(const DcpLayout::Chunk& c, const std::string& folder) {
  return InputFile(cat(folder, "/", dcp_file_name(c.rank)));
}

// Reads the checksums of the records. One file is open at a time, because the chunks of a layout are sorted
// by rank.
class WrittenSums {
 public:
  explicit WrittenSums(const std::string& folder) : folder_(folder) {}

  u32 of(const DcpLayout::Chunk& c) {
    if (!file_ || c.rank != rank_) {
      file_.emplace(file_of(c, folder_));
      rank_ = c.rank;
    }
    std::array<u8, 4> sum;
    file_->read(c.data_offset() + c.frame->data_bytes() + DcpTensorFrame::kCrc32At, sum);
    return load_le<u32>(sum.data());
  }

 private:
  const std::string& folder_;
  std::optional<InputFile> file_;
  i32 rank_ = -1;
};

// Whether the two chunks have the same bytes and are not one byte repeated.
bool same_bytes(const DcpLayout::Chunk& a, const DcpLayout::Chunk& b, const std::string& folder) {
  InputFile file_a = file_of(a, folder), file_b = file_of(b, folder);
  bool constant = true;
  i64 bytes = a.frame->data_bytes();
  u8 first = 0;
  for (i64 at = 0; at < bytes; at += kPiece) {
    i64 n = std::min(kPiece, bytes - at);
    std::vector<u8> mine = file_a.read(a.data_offset() + at, n);
    if (mine != file_b.read(b.data_offset() + at, n)) return false;
    if (at == 0) first = mine[0];
    constant = constant && std::ranges::all_of(mine, [&](u8 v) { return v == first; });
  }
  return !constant;
}

}  // namespace

std::vector<ChunkTwins> chunk_twins(const KeyTable& keys, const DcpLayout& layout,
                                    std::span<const i32> table_key, const std::string& folder,
                                    std::size_t most) {
  std::vector<ChunkTwins> out;
  NameMap<std::string, i64> seen;  // chunks by what twins have in common
  WrittenSums sums(folder);
  for (i64 c = 0; c < layout.chunk_count() && out.size() < most; c++) {
    DcpLayout::Chunk chunk = layout.chunk(c);
    const CheckpointKey& key = keys[table_key[chunk.key]];
    if (!keys.parameter(key).expert() || chunk.frame->data_bytes() == 0) continue;
    std::string common = cat(without_number(key.name), " ", dims_to_string(chunk.offsets), " ",
                             dims_to_string(chunk.sizes), " ", sums.of(chunk));
    auto [at, fresh] = seen.try_emplace(std::move(common), c);
    if (fresh) continue;
    DcpLayout::Chunk other = layout.chunk(at->second);
    if (same_bytes(chunk, other, folder))
      out.push_back({layout.key(other.key).name.text, layout.key(chunk.key).name.text});
  }
  return out;
}

}  // namespace mckpt::impl
