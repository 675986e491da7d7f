// Safetensors as a Store: one file, or many of them as one. Only this reader's own files include this
// header; others use open_store().
//
//   tensors_  "w" ---> rows_  file 0, row 12              ---> tables_[0]: type, shape, offset
//             "v" ---> rows_  file 1, row 3, at [0, 0]          (pieces of shards: shards.h)
//                             file 2, row 3, at [5, 0]
#pragma once

#include <deque>

#include "core/base/once.h"
#include "io/listing/manifest_sums.h"
#include "io/safetensors/table.h"
#include "io/store/store.h"

namespace mckpt::impl {

class ByteSource;

// Filled by those who open files and folders, and constant afterwards.
class SafetensorsStore final : public Store {
 public:
  SafetensorsStore(std::string root, Format format, OpenOptions opening);

  // Adds a file that could be read; returns its number. Its tensors are added one by one, by those who know
  // which count.
  i32 add_file(std::string path, i64 bytes, SafetensorsTable table);
  // Adds a file that is named but missing, or cannot be read; it has a number and no tensors.
  void add_lost_file(std::string path, i64 bytes);
  const SafetensorsTable& table(i32 file) const { return tables_[table_of_[file]]; }

  // Memory for that many files.
  void reserve_files(i64 count);
  // Memory for that many tensors of one chunk each.
  void reserve_tensors(i64 count);
  // A tensor that is whole in one row of a file's table.
  void add_tensor(i32 file, i64 row);
  // A tensor in pieces; each piece is a row whose dimensions are the sizes of its box.
  struct Piece {
    i32 file = -1;
    i64 row = 0;
    std::vector<i64> offsets;
    i32 rank = -1;
  };
  // Adds a tensor of pieces; `dims` is the shape of the whole.
  void add_sharded(std::span<const Piece> pieces, std::vector<i64> dims);

  void add_fact(std::string name, std::string value) {
    facts_.emplace_back(std::move(name), std::move(value));
  }
  // Shows the strings of __metadata__ that are for people.
  void add_metadata_facts(const SafetensorsTable& table);
  void add_finding(Finding finding) { findings_.push_back(std::move(finding)); }
  void set_ranks(i64 ranks) { ranks_ = ranks; }
  void set_format(Format format) { format_ = format; }

  i64 tensor_count() const override { return static_cast<i64>(tensors_.size()); }
  std::string_view name(i64 tensor) const override;
  DType dtype(i64 tensor) const override;
  std::span<const i64> dims(i64 tensor) const override;
  i64 chunk_count(i64 tensor) const override;
  Chunk chunk(i64 tensor, i64 index) const override;
  ChunkData resolve(i64 tensor, i64 index) const override;
  // The format has no checksums; a folder that mckpt wrote has them in its manifest.
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override;

 private:
  struct Row {
    i32 file = -1;
    i32 rank = -1;
    i64 row = 0;
    const i64* offsets = nullptr;  // of the chunk, as many as the row has dimensions
  };
  // A tensor is a range of rows; its name and type are taken from the first.
  struct Tensor {
    u32 first = 0;
    u32 rank = 0;
    const i64* dims = nullptr;
  };
  const Row& first_row(i64 tensor) const { return rows_[tensors_[tensor].first]; }
  const Row& row_at(i64 tensor, i64 index) const;
  std::optional<Checksum> checksum(i64 tensor, const Row& row) const;

  std::deque<SafetensorsTable> tables_;  // the first one is empty: the table of all lost files
  std::vector<u32> table_of_;            // by file; an index may name a hundred thousand files that are lost
  std::vector<Tensor> tensors_;
  std::vector<Row> rows_;
  std::deque<std::vector<i64>> numbers_;  // offsets and dimensions that stand in no table
  // The manifest is read when somebody first asks: listing tensors needs no sums.
  mutable Once sums_read_;
  mutable std::optional<ManifestSums> sums_;
};

// Reads the header of a file; if it is not safetensors, the error says what the file seems to be.
SafetensorsTable read_safetensors_table(const ByteSource& file);

}  // namespace mckpt::impl
