// The index of an archive: which bytes of which HDF5 file are the files of a checkpoint. An archive has every
// file that the checkpoint has, in pieces: the data of tensors are datasets, which other programs read as
// numbers, and what is between them (headers, pickles) is beside them. docs/formats/archive.md is the
// reference.
//
//   file model.safetensors, 9,000 bytes      row   bytes 0..799       at byte 61,440 of archive.h5
//                                            row   bytes 800..4,895   at byte 4,096 of archive.h5     "w", a dataset
//                                            row   bytes 4,896..8,999 at byte 65,536 of archive.h5
//
// A reader needs no HDF5 library: the user block, the 512 bytes in front of the HDF5 file, says where the
// index is. Rows are numbers, names are lines of text, and both are datasets of the HDF5 file too.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/listing/row.h"

namespace mckpt::impl {

class ByteSource;

// The name of the file with the index, in an archive that is a folder.
inline constexpr std::string_view kArchiveName = "archive.h5";
// The size of the user block, and what it begins with.
inline constexpr i64 kUserBlockBytes = 512;
inline constexpr std::string_view kArchiveMagic = "mckpt archive 1\n";

// A value. Rows are ascending by file and place, and tile every file.
struct ArchiveIndex {
  // An HDF5 file. `rest_crc32`: the sum of all its bytes that are in no row, and not in the user block, the
  // rows and the names, which have sums of their own.
  struct Part {
    std::string name;
    i64 bytes = 0;
    u32 rest_crc32 = 0;
  };
  // Bytes of a file and their place in a part.
  struct Row {
    i64 file = 0, begin = 0, bytes = 0;
    i64 part = 0, offset = 0;
    u32 crc32 = 0;

    i64 end() const { return begin + bytes; }
    bool operator==(const Row&) const = default;
  };

  bool folder = false;  // the archive is a folder of several HDF5 files, not one file
  // The file that is the checkpoint; "": the folder of all files is.
  std::string opened;
  std::vector<ListedFile> files;  // of the checkpoint
  std::vector<Part> parts;        // the first has the index
  std::vector<Row> rows;

  static constexpr i64 kColumns = 6;
  // As they are stored: each number of a row in 8 bytes, and lines of text of a length that no sum changes.
  std::vector<u8> row_bytes() const;
  std::string name_text() const;
};

// Where the index is in its file.
struct IndexPlace {
  i64 rows_offset = 0, rows_bytes = 0;
  i64 names_offset = 0, names_bytes = 0;
  u32 rows_crc32 = 0, names_crc32 = 0;
};
std::vector<u8> user_block(const IndexPlace& place);  // kUserBlockBytes

// Whether a file begins as one with an index does.
bool is_archive(const ByteSource& file);
// pre: is_archive(). Throws kBadHdf5 for a user block whose sum is wrong.
IndexPlace index_place(const ByteSource& file);
// The index, all of it checked. Throws kBadHdf5.
ArchiveIndex read_archive_index(const ByteSource& file, const IndexPlace& place);

}  // namespace mckpt::impl
