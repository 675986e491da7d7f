// The .metadata of a DCP folder, as columns. The file is one pickle of torch's class Metadata:
//
//   Metadata
//     state_dict_metadata  name -> TensorStorageMetadata {properties, size, chunks: [{offsets, sizes}, ...]}
//                                | BytesStorageMetadata (an object, such as `args`)
//     storage_data         MetadataIndex {fqn, offset, index} -> _StorageInfo {relative_path, offset, length}
//     planner_data         name -> path in the nested dict that was saved; None in torch_dist
//     storage_meta, version
//
// A chunk is what one rank stored of a tensor: a box in the global tensor, and a record in a file. Joined
// by name and offset, a tensor of shape [10, 4] that two ranks saved is:
//
//   names  dtypes  dims      offsets  sizes    records
//   "w"    f32     [10, 4]   [0, 0]   [6, 4]   file 0, bytes [0, 1641)
//                            [6, 0]   [4, 4]   file 1, bytes [0, 1577)
//
// A hundred thousand tensors are 60 MB of pickle; the columns are about 20 MB of plain numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/store/finding.h"

namespace mckpt::impl {

// Rows of different lengths in one array, one after the other; `ends` has the end of each. It replaces a
// vector of vectors, which would allocate once a row.
template <typename T>
struct RaggedRows {
  std::vector<T> items;
  std::vector<i64> ends;

  i64 size() const { return static_cast<i64>(ends.size()); }
  std::span<const T> operator[](i64 row) const {
    i64 begin = row == 0 ? 0 : ends[row - 1];
    return std::span(items).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(ends[row] - begin));
  }
  void reserve(std::size_t rows, std::size_t items_of_a_row) {
    items.reserve(rows * items_of_a_row);
    ends.reserve(rows);
  }
  void end_row() { ends.push_back(static_cast<i64>(items.size())); }
};

// A range of bytes in a data file: one torch.save archive, which holds one chunk or one object.
struct DcpRecord {
  i32 file = -1;     // index into DcpMetadata::files; -1: .metadata names no place
  i32 packing = -1;  // index into DcpMetadata::packings; -1: stored as torch.save wrote it
  i64 offset = 0, bytes = 0;
};

// The columns. The rows of a tensor's chunks are in the order of the file, which is the order of the ranks
// that planned them, not the order of the offsets. Made by parse_dcp_metadata() or merge_dcp_metadata(), kept
// by DcpStore.
struct DcpMetadata {
  // One row for each tensor, in the order of the file.
  RaggedRows<char> names;
  std::vector<DType> dtypes;
  RaggedRows<i64> dims;
  RaggedRows<DcpRecord> records;   // one for each chunk
  RaggedRows<i64> offsets, sizes;  // for each chunk one number for each dimension
  // One row for each object.
  RaggedRows<char> object_names;
  std::vector<DcpRecord> object_records;

  std::vector<std::string> files;     // relative to the folder, none of them leads out of it
  std::vector<std::string> packings;  // "stream.zstd/1": the extensions of a record, parted by commas
  std::string version;                // "1.0.0" since torch 2.9; "" before
  std::string save_id;                // of StorageMeta; "" where there is none
  // The last pipeline stage numbered its layers from 0, although it does not have the embedding: planner_data
  // begins with the names of the last rank, in the order of its model.
  bool stage_local_layers = false;
  // The names in planner_data, in their order, with tensors and objects among each other; none where the
  // folder has no paths, and of the indexes of single ranks.
  RaggedRows<char> saved_order;
  std::vector<Finding> findings;

  // A tensor or object that several ranks wrote (each with an index of its own): the record that is used, and
  // another one that check() compares with it.
  struct Copy {
    i64 row = 0;  // of the tensor or object
    bool object = false;
    DcpRecord taken, other;
  };
  std::vector<Copy> copies;

  i64 tensor_count() const { return names.size(); }
  std::string_view name(i64 tensor) const { return text(names, tensor); }
  std::string_view object_name(i64 object) const { return text(object_names, object); }
  std::string_view saved_name(i64 place) const { return text(saved_order, place); }

 private:
  static std::string_view text(const RaggedRows<char>& rows, i64 row) {
    return {rows[row].data(), rows[row].size()};
  }
};

// Throws kBadMetadata, kBadPath, kBadShape, kUnknownDType, and what the pickle interpreter throws. A fault of
// a single entry becomes a finding, and the rest is still usable.
DcpMetadata parse_dcp_metadata(std::span<const u8> pickle);

// Joins the indexes of the ranks, one for each rank (__<rank>.metadata) to one checkpoint; `parts` in the
// order of the ranks. Throws kBadMetadata when two of them describe a tensor differently.
DcpMetadata merge_dcp_metadata(std::span<const DcpMetadata> parts);

}  // namespace mckpt::impl
