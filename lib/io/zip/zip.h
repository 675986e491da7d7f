// A zip archive as torch.save writes it: records stored in one piece, one after the other, the directory
// behind them. It is a whole file, or a range of one (an item of a .distcp file).
//
//   [local header, name, padding][data] [...] [directory] [zip64 end][zip64 locator] [end]
//    ^ header_offset              ^ data_offset, in torch's files a multiple of 64
//
// The directory has an entry for each record: name, sizes, CRC-32, offset of its header. Reading starts at
// the end: the end record says where the directory is.
//
// One reader serves every command, and it accepts only archives that can be read in one way: the end record
// is the last thing there, directory and local headers agree, records neither overlap nor share a name (not
// even in another case: torch looks names up without regard to case). So no two programs see
// two different archives in one file.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;

// One record. Offsets count from the beginning of the source. `name` points into the archive.
struct ZipEntry {
  std::string_view name;  // with its folder: "archive/data/0"
  i64 header_offset = 0;  // of the local header, from the beginning of the source
  i64 data_offset = 0;
  i64 stored_bytes = 0;
  i64 bytes = 0;  // equal to stored_bytes unless deflated
  u32 crc32 = 0;
  bool deflated = false;
};

struct ZipEnd;

// A directory that was read and checked; records are read on demand.
class ZipArchive {
 public:
  // Reads and checks the directory and every local header. torch reads archives with bytes behind their
  // end, and items of .distcp files may have some: `most_trailing_bytes` of them are allowed. Keeps a
  // reference to the source. Throws kBadZip, kUnsupportedZip, kReadFailed.
  explicit ZipArchive(const ByteSource& source, i64 most_trailing_bytes = 0);
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  std::span<const ZipEntry> entries() const { return entries_; }  // in the order of the directory
  // Null if there is no record of exactly this name.
  const ZipEntry* find(std::string_view name) const;

  // False: torch's checksums were switched off, and all of them are zeros.
  bool has_checksums() const { return has_checksums_; }

  // The bytes of the record, inflated, their checksum verified where there is one. Throws kBadChecksum, and
  // kUnsupportedZip for more than `most_bytes`.
  std::vector<u8> read(const ZipEntry& entry, i64 most_bytes) const;

 private:
  void parse_directory(const ZipEnd& end);
  void index_names();
  void check_local_headers(i64 directory_offset);

  const ByteSource& source_;
  std::vector<u8> directory_;  // the names of the entries point into it
  std::vector<ZipEntry> entries_;
  bool has_checksums_ = false;
  std::vector<u32> slots_;  // hash table by name: number of the entry + 1; 0 is free
};

}  // namespace mckpt::impl
