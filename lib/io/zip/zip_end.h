// The place of the central directory of a zip archive: found by the end record, the last 22 bytes of the
// file, or by the zip64 end record where the numbers are too large for it.
//
//   [directory][zip64 end: 64-bit numbers][locator: where the zip64 end is][end: 16- and 32-bit numbers]
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;

// The contents of the end records, checked.
struct ZipEnd {
  i64 directory_offset = 0, directory_bytes = 0;
  i64 entries = 0;
  u32 disk = 0;  // the number of this file, the only one: 0, or 1 by writers that count from there
};

// Finds the end record and checks that the directory is directly before it. Throws kBadZip,
// kUnsupportedZip.
ZipEnd find_zip_end(const ByteSource& source, i64 most_trailing_bytes);

// Throws kBadZip: "the zip archive is damaged: ...".
[[noreturn]] void throw_bad_zip(std::string_view message, i64 offset);

// A 64-bit value of an archive as an i64. A larger one cannot be inside a file either. Throws kBadZip.
i64 checked_zip_value(u64 value, std::string_view what, i64 offset);

}  // namespace mckpt::impl
