// A store over the tables of torch files: one file, or the files of several ranks. Who opens the files
// (open_torch.cc, folder.cc, megatron_run.cc, zero/) decides which of their rows become tensors, and how they
// are called.
//
//   tensors_   "w" ----> rows_  file 0, row 3, offsets [0, 0]
//                               file 1, row 3, offsets [6, 0]   ---> parts_[1].table: sizes, place, strides
#pragma once

#include <deque>

#include "core/base/int.h"
#include "io/store/store.h"
#include "io/torch/file.h"

namespace mckpt::impl {

class PickleValue;

// A tensor is one row of a file, or the pieces of several; an object is a value of a file's pickle.
class TorchStore final : public Store {
 public:
  TorchStore(std::string root, Format format, OpenOptions opening);

  // Takes over headers, objects (behind `prefix`) and findings of a file. Returns the file's number.
  i32 add_file(std::string path, i64 bytes, TorchFile file, std::string_view prefix = "", i32 rank = -1);
  // A file of bytes as one object. `form`: what is said behind their number.
  void add_bytes(std::string path, i64 bytes, std::string name, i32 rank, std::string_view form);
  // A file that should be there; no tensor is in it. pre: all files that are there were added.
  void add_missing_file(std::string path) { files_.push_back({std::move(path), -1}); }
  const TorchTable& table(i32 file) const { return parts_[file].table; }
  i32 part_count() const { return static_cast<i32>(parts_.size()); }
  i32 rank(i32 file) const { return parts_[file].rank; }
  bool big_endian(i32 file) const { return parts_[file].big_endian; }

  // The first bytes of the tensor's name that lead to the dict or list with it (TorchTable), and prefixes.
  i64 dict_bytes(i64 tensor) const;

  // How the file states that the tensor is distributed; null: as a whole tensor.
  const TorchSharding* sharding(i64 tensor) const;

  const Checksum* record_sum(i32 file, i64 row) const;  // of the record that has the row; null: there is none

  // Adds a tensor that is whole in one file; named by `prefix` and its own name.
  void add_tensor(i32 file, i64 row, std::string_view prefix = "");

  // A tensor of the pieces that files have of it. pre of add_sharded(): one offset for each dimension, and
  // the same of a part of the row, which is a box in it.
  struct Piece {
    i32 file = -1;
    i64 row = 0;
    std::vector<i64> offsets{};
    bool replica = false;
    std::vector<i64> begin{}, sizes{};  // empty: the row as a whole
  };
  void add_sharded(std::string_view name, std::span<const i64> dims, std::span<const Piece> pieces);

  void set_ranks(i64 ranks) { ranks_ = ranks; }
  void set_format(Format format) { format_ = format; }
  void add_finding(Finding f) { findings_.push_back(std::move(f)); }

  i64 tensor_count() const override { return static_cast<i64>(tensors_.size()); }
  std::string_view name(i64 tensor) const override;
  DType dtype(i64 tensor) const override;
  std::span<const i64> dims(i64 tensor) const override { return tensors_[tensor].dims; }
  i64 chunk_count(i64 tensor) const override;
  Chunk chunk(i64 tensor, i64 index) const override;
  ChunkData resolve(i64 tensor, i64 index) const override;
  std::shared_ptr<const PickleValue> object(i64 index) const override;
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override;
  std::optional<std::vector<Finding>> check(int threads) const override;

 private:
  // One file.
  struct Part {
    TorchTable table;
    bool big_endian;
    i32 rank;
    std::vector<Checksum> checksums;
  };
  // One chunk: a row of a file's table or a box in it, and its place in the tensor.
  struct Row {
    i32 file;
    bool replica;
    i64 row;
    std::span<const i64> offsets;
    const std::vector<i64>* box = nullptr;  // where it begins in the row, then its sizes; null: the row
  };
  // A tensor has the rows from `first` to the next tensor's first.
  struct Tensor {
    u64 first;  // of its rows; the next tensor's ends them
    u64 name_begin;
    u64 name_bytes;
    std::span<const i64> dims;
  };
  // The value points into the pickle.
  struct ObjectValue {
    std::shared_ptr<const Pickle> pickle;  // null: the object is bytes
    PickleValue value;
  };
  const Row& row_at(i64 tensor, i64 index) const;
  std::span<const i64> sizes(const Row& r) const;
  std::vector<i64> strides(const Row& r) const;
  i64 bytes_before(const Row& r) const;
  i64 extent_bytes(const Row& r) const;
  const Part& part(i32 file) const { return parts_[file]; }
  void open_tensor(std::string_view prefix, std::string_view name, std::span<const i64> dims);

  std::deque<Part> parts_;
  std::vector<Row> rows_;
  std::vector<Tensor> tensors_;
  std::string names_;
  std::deque<std::vector<i64>> numbers_;
  std::vector<ObjectValue> values_;              // of objects_
  std::vector<std::vector<i64>> tensor_of_row_;  // by file: the tensor that a row became, for checksums
};

}  // namespace mckpt::impl
