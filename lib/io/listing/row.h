// A row of a list of files: mckpt's manifest, a card, integrity.json of torch's DCP, the index of an archive.
// Lists that say more of a file add it to the row.
//
//   ListedFile                   name, size, SHA-256, as far as the list says them
//   ManifestFile : ListedFile    sums of the data of its tensors, and of all bytes around them
//   CardFile : ListedFile        sums of the bytes of no tensor
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

struct ListedFile {
  std::string name;      // relative to the folder
  i64 bytes = -1;        // -1: the list does not say it
  std::string sha256{};  // in small letters; "": the list does not say it
};

// Bytes [offset, offset + bytes) of a file, and their CRC-32.
struct SummedStretch {
  i64 offset = 0, bytes = 0;
  u32 crc32 = 0;

  i64 end() const { return offset + bytes; }
};

}  // namespace mckpt::impl
