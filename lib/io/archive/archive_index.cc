// Index and user block as bytes, and back. The index is checked before it is used: sums first, then that rows
// tile every file and are inside of their parts, and that no name leads out of the archive.
#include "io/archive/archive_index.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/bytes.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/file/folder.h"

namespace mckpt::impl {
namespace {

// The places and sums in the user block, and the sum of the block itself behind them.
constexpr i64 kBlockSumAt = 56;

Error bad(std::string message) { return Error(Code::kBadHdf5, std::move(message)); }

// Lines "NUMBER NUMBER REST".
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::string_view next() {
    std::size_t end = rest_.find('\n');
    if (end == rest_.npos) throw bad("the names of the archive are cut short");
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::string_view take_word(std::string_view& line) {
  std::size_t space = std::min(line.find(' '), line.size());
  std::string_view word = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return word;
}

i64 take_number(std::string_view& line, int base = 10) {
  std::string_view word = take_word(line);
  i64 value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc() || end != word.data() + word.size() || value < 0)
    throw bad("a number in the names of the archive is none").found(escaped(word, 40));
  return value;
}

// The line "WORD COUNT".
std::size_t take_count(Lines& lines, std::string_view word, i64 text_bytes) {
  std::string_view line = lines.next();
  if (take_word(line) != word) throw bad(cat("the names of the archive have no list of ", word));
  i64 count = take_number(line);
  if (count > text_bytes) throw bad("the names of the archive are fewer than they say");
  return static_cast<std::size_t>(count);
}

void check_name(std::string_view name, bool plain) {
  try {
    check_inside_name(name);
  } catch (Error& e) {
    throw e.prefix("a name in the archive: ");
  }
  if (plain && name.find('/') != name.npos)
    throw bad("a file of the archive is in another folder").found(escaped(name));
}

void check_unique(const ArchiveIndex& index) {
  NameSet<std::string_view> files, folders;
  for (const ListedFile& f : index.files) {
    if (!files.insert(f.name).second)
      throw bad("the archive has two files of one name").found(escaped(f.name));
    for (std::size_t at = f.name.find('/'); at != f.name.npos; at = f.name.find('/', at + 1))
      folders.insert(std::string_view(f.name).substr(0, at));
  }
  for (std::string_view folder : folders)
    if (files.contains(folder)) throw bad("a file of the archive is also a folder").found(escaped(folder));
}

void parse_names(std::string_view text, ArchiveIndex& out) {
  Lines lines(text);
  const i64 bytes = std::ssize(text);
  std::string_view kind = lines.next();
  if (kind != "folder" && kind != "file") throw bad("the names of the archive do not say what it is");
  out.folder = kind == "folder";
  std::string_view opened = lines.next();
  if (take_word(opened) != "opened") throw bad("the names of the archive do not say what the checkpoint is");
  out.opened = opened;
  out.parts.resize(take_count(lines, "parts", bytes));
  for (ArchiveIndex::Part& part : out.parts) {
    std::string_view line = lines.next();
    part.bytes = take_number(line);
    part.rest_crc32 = static_cast<u32>(take_number(line, 16));
    check_name(part.name = line, true);
  }
  out.files.resize(take_count(lines, "files", bytes));
  for (ListedFile& file : out.files) {
    std::string_view line = lines.next();
    file.bytes = take_number(line);
    check_name(file.name = line, false);
  }
  if (!lines.done()) throw bad("text follows the names of the archive");
  if (out.parts.empty()) throw bad("the archive has no files");
  check_unique(out);
}

void parse_rows(std::span<const u8> bytes, ArchiveIndex& out) {
  const u8* at = bytes.data();
  auto next = [&] {
    i64 value = static_cast<i64>(std::min<u64>(load_le<u64>(at), INT64_MAX));
    at += sizeof(u64);
    return value;
  };
  out.rows.resize(bytes.size() / (ArchiveIndex::kColumns * sizeof(u64)));
  for (ArchiveIndex::Row& row : out.rows)
    row = {next(), next(), next(), next(), next(), static_cast<u32>(next())};
}

// Every file is tiled, and every row is inside of its part.
void check_rows(const ArchiveIndex& index) {
  std::size_t row = 0;
  for (i64 f = 0; f < std::ssize(index.files); f++) {
    i64 at = 0;
    for (; row < index.rows.size() && index.rows[row].file == f; row++) {
      const ArchiveIndex::Row& r = index.rows[row];
      if (r.begin != at || r.bytes <= 0 || r.bytes > index.files[f].bytes - at)
        throw bad("the pieces of a file are not one behind the other").found(escaped(index.files[f].name));
      at += r.bytes;
      if (r.part >= std::ssize(index.parts)) throw bad("a piece is in a file that the archive does not have");
      i64 room = index.parts[r.part].bytes;
      if (r.offset > room || r.bytes > room - r.offset)
        throw bad("a piece is beyond the end of its file").found(escaped(index.parts[r.part].name));
    }
    if (at != index.files[f].bytes)
      throw bad("the pieces of a file are not all of it").found(escaped(index.files[f].name));
  }
  if (row != index.rows.size()) throw bad("a piece of the archive belongs to no file");
}

std::vector<u8> summed(const ByteSource& file, i64 offset, i64 bytes, u32 crc32_wanted, const char* what) {
  std::vector<u8> out;
  if (offset < 0 || bytes < 0 || offset > file.size() || bytes > file.size() - offset)
    throw bad(cat(what, " of the archive are beyond the end of the file: it was cut short"))
        .expected(cat("at least ", offset + bytes, " bytes"))
        .found(cat(file.size(), " bytes"));
  out = file.read(offset, bytes);
  if (crc32(0, out) != crc32_wanted)
    throw bad(cat(what, " of the archive are damaged: the sum is not that of their bytes")).offset(offset);
  return out;
}

}  // namespace

std::vector<u8> ArchiveIndex::row_bytes() const {
  std::vector<u8> out;
  out.reserve(rows.size() * kColumns * sizeof(u64));
  for (const Row& r : rows)
    for (i64 n : {r.file, r.begin, r.bytes, r.part, r.offset, static_cast<i64>(r.crc32)})
      append_le(out, static_cast<u64>(n));
  return out;
}

std::string ArchiveIndex::name_text() const {
  std::string out = cat(folder ? "folder" : "file", "\nopened ", opened, "\nparts ", std::ssize(parts), "\n");
  // As long whatever the size is.
  auto padded = [](i64 n) {
    std::string digits = cat(n);
    return std::string(20 - digits.size(), '0') + digits;
  };
  for (const Part& p : parts) out += cat(padded(p.bytes), " ", crc32_text(p.rest_crc32), " ", p.name, "\n");
  out += cat("files ", std::ssize(files), "\n");
  for (const ListedFile& f : files) out += cat(f.bytes, " ", f.name, "\n");
  return out;
}

std::vector<u8> user_block(const IndexPlace& place) {
  std::vector<u8> out(kArchiveMagic.begin(), kArchiveMagic.end());
  for (i64 n : {place.rows_offset, place.rows_bytes, place.names_offset, place.names_bytes})
    append_le(out, static_cast<u64>(n));
  append_le(out, place.rows_crc32);
  append_le(out, place.names_crc32);
  append_le(out, crc32(0, out));
  out.resize(kUserBlockBytes);
  return out;
}

bool is_archive(const ByteSource& file) {
  if (file.size() < kUserBlockBytes) return false;
  std::vector<u8> begin = file.read(0, std::ssize(kArchiveMagic));
  return std::ranges::equal(begin, kArchiveMagic, [](u8 a, char b) { return a == static_cast<u8>(b); });
}

IndexPlace index_place(const ByteSource& file) {
  std::vector<u8> block = file.read(0, kUserBlockBytes);
  const u8* at = block.data();
  auto number = [&](i64 offset) {
    return static_cast<i64>(std::min<u64>(load_le<u64>(at + offset), INT64_MAX));
  };
  bool zeros = std::all_of(block.begin() + kBlockSumAt + 4, block.end(), [](u8 b) { return b == 0; });
  if (!zeros || load_le<u32>(at + kBlockSumAt) != crc32(0, std::span(block).first(kBlockSumAt)))
    throw bad("the first 512 bytes of the archive are damaged: the sum is not that of their bytes");
  return {number(16), number(24), number(32), number(40), load_le<u32>(at + 48), load_le<u32>(at + 52)};
}

ArchiveIndex read_archive_index(const ByteSource& file, const IndexPlace& place) {
  ArchiveIndex out;
  std::vector<u8> names = summed(file, place.names_offset, place.names_bytes, place.names_crc32, "the names");
  parse_names({reinterpret_cast<const char*>(names.data()), names.size()}, out);
  if (place.rows_bytes % (ArchiveIndex::kColumns * static_cast<i64>(sizeof(u64))) != 0)
    throw bad("the rows of the archive are no whole rows");
  parse_rows(summed(file, place.rows_offset, place.rows_bytes, place.rows_crc32, "the rows"), out);
  check_rows(out);
  return out;
}

}  // namespace mckpt::impl
