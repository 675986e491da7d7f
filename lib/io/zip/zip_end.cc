// Finds and checks the end records of a zip archive.
#include "io/zip/zip_end.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "io/file/bytes.h"
#include "io/file/file.h"

namespace mckpt::impl {
namespace {

// First bytes and sizes of the three end records, and the longest comment behind the last.
constexpr u32 kEndMagic = 0x06054b50, kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr i64 kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr i64 kMostCommentBytes = 0xffff;
constexpr i64 kMostDirectoryBytes = i64{256} << 20;  // more than two million records

template <std::size_t N>
std::array<u8, N> read_record(const ByteSource& source, i64 offset) {
  std::array<u8, N> out;
  source.read(offset, out);
  return out;
}

// The offset of the end record: the last place that has its mark, because that is where readers begin.
i64 find_end_record(const ByteSource& source, i64 most_trailing_bytes) {
  // Nearly always the record is the last 22 bytes.
  for (i64 reach : {kEndBytes, kEndBytes + kMostCommentBytes + most_trailing_bytes}) {
    i64 begin = std::max<i64>(source.size() - reach, 0);
    std::vector<u8> tail = source.read(begin, source.size() - begin);
    for (i64 at = static_cast<i64>(tail.size()) - kEndBytes; at >= 0; at--) {
      const u8* p = tail.data() + at;
      if (load_le<u32>(p) != kEndMagic) continue;
      i64 behind = static_cast<i64>(tail.size()) - at - kEndBytes - load_le<u16>(p + 20);
      if (behind < 0) throw_bad_zip("the comment of its end record is truncated", begin + at);
      if (behind > most_trailing_bytes)
        throw_bad_zip(cat(behind, " trailing bytes follow the end of the zip archive"), begin + at);
      return begin + at;
    }
  }
  throw Error(Code::kBadZip,
              "the end of the zip archive (its central directory) is missing: the file is truncated")
      .offset(source.size())
      .help("copy or download the file again");
}

// Archives may be spread over several files ("disks"). torch looks at the numbers, and reads only archives
// of one.
void check_one_part(u32 disk, u32 directory_disk, i64 entries_here, i64 entries, i64 offset) {
  if (disk == directory_disk && disk <= 1 && entries_here == entries) return;
  throw Error(Code::kUnsupportedZip, "the zip archive is one of several parts").offset(offset);
}

// The numbers of the zip64 end record, or `narrow` where there is none. Moves `end` to the record that
// follows the directory.
ZipEnd widened(const ByteSource& source, const ZipEnd& narrow, i64& end) {
  i64 locator_at = end - kLocator64Bytes;
  if (locator_at < 0) return narrow;
  auto locator = read_record<kLocator64Bytes>(source, locator_at);
  if (load_le<u32>(locator.data()) != kLocator64Magic) return narrow;
  i64 at = checked_zip_value(load_le<u64>(locator.data() + 8), "the zip64 locator", locator_at);
  if (at > locator_at - kEnd64Bytes)
    throw_bad_zip("the zip64 locator points beyond the place of the zip64 end record", locator_at);
  auto record = read_record<kEnd64Bytes>(source, at);
  const u8* p = record.data();
  if (load_le<u32>(p) != kEnd64Magic)
    throw_bad_zip("the zip64 locator does not point at a zip64 end record", at);
  if (load_le<u64>(p + 4) < kEnd64Bytes - 12) throw_bad_zip("the size of the zip64 end record is wrong", at);
  ZipEnd wide{checked_zip_value(load_le<u64>(p + 48), "the offset of the central directory", at),
              checked_zip_value(load_le<u64>(p + 40), "the size of the central directory", at),
              checked_zip_value(load_le<u64>(p + 32), "the number of entries", at), load_le<u32>(p + 16)};
  i64 entries_here = checked_zip_value(load_le<u64>(p + 24), "the number of entries", at);
  check_one_part(wide.disk, load_le<u32>(p + 20), entries_here, wide.entries, at);
  check_one_part(0, 0, load_le<u32>(locator.data() + 16), 1, locator_at);
  // A field that does not say "look in zip64" says the same as zip64, or two readers see two archives.
  auto agree = [](i64 narrow_field, i64 saturated, i64 wide_field) {
    return narrow_field == saturated || narrow_field == wide_field;
  };
  if (!agree(narrow.entries, 0xffff, wide.entries) ||
      !agree(narrow.directory_bytes, 0xffffffff, wide.directory_bytes) ||
      !agree(narrow.directory_offset, 0xffffffff, wide.directory_offset))
    throw_bad_zip("its end record and its zip64 end record disagree about the central directory", at);
  end = at;
  return wide;
}

// The directory ends exactly where the end records begin: anything else means a prefix or missing bytes.
void check_directory_place(const ZipEnd& z, i64 end) {
  if (z.directory_offset > end || z.directory_bytes > end - z.directory_offset)
    throw_bad_zip(cat("the central directory is beyond its place: offset ", z.directory_offset, ", ",
                      z.directory_bytes, " bytes, but it must end at ", end),
                  end);
  if (z.directory_offset + z.directory_bytes != end)
    throw_bad_zip(cat("the central directory ends at ", z.directory_offset + z.directory_bytes,
                      ", the record after it begins at ", end,
                      ": bytes were put in front of the archive (a prefix) or taken out"),
                  end);
  if (z.directory_bytes > kMostDirectoryBytes)
    throw Error(Code::kUnsupportedZip, "the central directory of the zip archive is too large")
        .expected(cat("at most ", kMostDirectoryBytes, " bytes"))
        .found(z.directory_bytes);
}

}  // namespace

void throw_bad_zip(std::string_view message, i64 offset) {
  throw Error(Code::kBadZip, cat("the zip archive is damaged: ", message)).offset(offset);
}

i64 checked_zip_value(u64 value, std::string_view what, i64 offset) {
  if (value > static_cast<u64>(INT64_MAX))
    throw_bad_zip(cat(what, " overflows: it is beyond the end of any file"), offset);
  return static_cast<i64>(value);
}

ZipEnd find_zip_end(const ByteSource& source, i64 most_trailing_bytes) {
  i64 end = find_end_record(source, most_trailing_bytes);
  auto record = read_record<kEndBytes>(source, end);
  const u8* p = record.data();
  ZipEnd narrow{load_le<u32>(p + 16), load_le<u32>(p + 12), load_le<u16>(p + 10), load_le<u16>(p + 4)};
  i64 narrow_end = end;
  ZipEnd z = widened(source, narrow, end);
  // Where there is a zip64 end record, what counts is said there.
  if (end == narrow_end)
    check_one_part(narrow.disk, load_le<u16>(p + 6), load_le<u16>(p + 8), narrow.entries, end);
  check_directory_place(z, end);
  return z;
}

}  // namespace mckpt::impl
