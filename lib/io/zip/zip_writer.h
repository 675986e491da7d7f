// The pieces of a zip archive with stored records, as torch writes them: local headers whose padding puts
// the data at a multiple of 64 bytes, directory entries, and the three end records. Nothing depends on the
// time, so equal records give equal bytes.
//
//   header  name  extra field "FB" ZZZZZZ | data             the Zs end at the multiple of 64
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

inline constexpr i64 kZipAlignment = 64;
// The bytes with which a local header begins.
inline constexpr std::string_view kZipRecordMark = "PK\3\4";

// One record; the caller fills in header_offset, and data_offset by zip_data_offset().
struct ZipRecord {
  std::string name;
  i64 bytes = 0;
  i64 header_offset = 0, data_offset = 0;  // in the archive
  u32 crc32 = 0;
  // The checksum is not known when the header is written; a descriptor behind the data has it.
  bool crc_behind = false;
};

// The offset of the data of a record whose header begins at `header_offset`. Throws kSizeOverflow,
// kOddName.
i64 zip_data_offset(const ZipRecord& record);

// These append to `out`: the header with its padding, up to the data; the descriptor behind the data (pre:
// crc_behind); an entry of the directory; the three end records.
void append_zip_header(std::vector<u8>& out, const ZipRecord& record);
void append_zip_descriptor(std::vector<u8>& out, const ZipRecord& record);  // pre: crc_behind
i64 zip_descriptor_bytes(const ZipRecord& record);
void append_zip_entry(std::vector<u8>& out, const ZipRecord& record);
void append_zip_ends(std::vector<u8>& out, i64 records, i64 directory_offset, i64 directory_bytes);
inline constexpr i64 kZipEndsBytes = 56 + 20 + 22;  // zip64 end, its locator, plain end

}  // namespace mckpt::impl
