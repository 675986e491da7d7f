// ArchiveLayout: an archive before it is written: which bytes of the files of a checkpoint go where in which
// HDF5 file, and all other bytes of these files. HDF5 lays the files out (io/hdf5/compose.h); data are copied
// by a job.
//
//   __0_0.distcp   [zip] w rows 0-2 [zip]          archive.h5            /w            virtual: rows 0-2, 3-3 of the parts
//   __1_0.distcp   [zip] w row 3 [zip]       -->                         /bias         small: its own data
//   .metadata                                                            /__mckpt__/files/__0_0.distcp    [zip] [zip] ...
//                                                                        /__mckpt__/index, names
//                                                __0_0.distcp.h5   /w   rows 0-2      __1_0.distcp.h5   /w   row 3
//
// In a single file, and for small tensors, chunks that are rows of their tensor are put together to one
// dataset.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/archive/archive_index.h"
#include "io/hdf5/compose.h"

namespace mckpt::impl {

class CopySink;
struct OutputFile;

// The group of an archive that is not tensors.
inline constexpr std::string_view kArchiveGroup = "__mckpt__";

struct ArchiveTensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<i64> dims;
};

// A chunk that has items.
struct ArchiveChunk {
  i64 tensor = 0;
  std::vector<i64> offsets, sizes;
  i64 file = 0;  // of the checkpoint, that has the chunk
  // The place in it, if the bytes there are the items row by row and little-endian; -1: the items are made of
  // the file's bytes, and are stored beside them.
  i64 begin = -1;
  i64 bytes = 0;  // of the items

  // Set by the layout.
  i64 part = -1, offset = -1;
  bool is_row = false;  // the bytes belong to the file, which has no others of its own
};

// The contents of an archive. Plain values.
struct ArchiveContents {
  std::string file_name;  // of a single file; "": a folder
  std::string opened;     // as in ArchiveIndex
  std::vector<ListedFile> files;
  std::vector<ArchiveTensor> tensors;
  std::vector<ArchiveChunk> chunks;
  std::vector<std::pair<std::string, std::string>> facts;  // attributes of the archive
};

class ArchiveLayout {
 public:
  ~ArchiveLayout();
  // Composes all files. Throws kNotHeld for names that HDF5 cannot have, kUnsupportedTensor for elements
  // smaller than a byte in several chunks, and what compose_hdf5() throws.
  ArchiveLayout(ArchiveContents contents, std::span<const std::string> helper_folders);

  std::vector<OutputFile> output_files() const;
  const std::vector<ArchiveTensor>& tensors() const { return in_.tensors; }
  const std::vector<ArchiveChunk>& chunks() const { return in_.chunks; }
  // The rows of the index, without sums: each is the data of a chunk, or bytes between them.
  const std::vector<ArchiveIndex::Row>& rows() const { return index_.rows; }
  // The number of the chunk whose data a row is; -1: bytes between.
  i64 chunk_of_row(i64 row) const { return chunk_of_row_[row]; }
  // Differs for another layout.
  std::string identity() const;

  // The sum of the data that were written at a place.
  using SumAt = std::function<u32(i64 part, i64 offset)>;
  // Writes everything but the data: what HDF5 composed, the index, and the user block last. To be called when
  // all data are written.
  void write(CopySink& out, const SumAt& sum) const;

 private:
  struct Part;
  struct Stretch {
    i64 offset, bytes;
    u32 crc32;
    bool counts;  // among the rest
  };
  std::string part_name(i64 file);
  void find_rows();
  void place_tensors();
  void add_whole(i64 tensor, std::span<const i64> chunks);
  void add_virtual(i64 tensor, std::span<const i64> chunks);
  i64 part_of(i64 file);
  void add_files();
  void compose(std::span<const std::string> helper_folders);
  void make_rows();
  std::vector<Stretch> known_stretches(i64 part, const SumAt& sum) const;

  ArchiveContents in_;
  ArchiveIndex index_;
  IndexPlace place_;
  std::vector<Part> parts_;
  std::vector<std::vector<i64>> rows_of_file_;  // chunks that are rows, by place
  std::vector<i64> chunk_of_row_;
  std::vector<i64> part_of_file_;  // -1: the file has none
  std::vector<i64> rest_dataset_, rest_bytes_, rest_offset_;
  i64 index_dataset_ = -1, names_dataset_ = -1;
};

}  // namespace mckpt::impl
