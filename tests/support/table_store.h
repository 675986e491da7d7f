// A store of tensors that a test lists by hand, over files that it wrote.
#pragma once

#include <string>
#include <vector>

#include "core/items/shape.h"
#include "io/store/open/format_ids.h"
#include "io/store/store.h"

namespace mckpt::impl {

class TableStore : public Store {
 public:
  struct Piece {
    std::vector<i64> offsets, sizes;
    ChunkData data;
    i32 rank = -1;
    bool replica = false;
  };
  struct Tensor {
    std::string name;
    DType dtype = DType::kF32;
    std::vector<i64> dims;
    std::vector<Piece> pieces;
  };

  explicit TableStore(std::string root) {
    root_ = std::move(root);
    format_ = Format::kTorchFiles;
  }
  i32 add_file(std::string path, i64 bytes) {
    files_.push_back({std::move(path), bytes});
    return static_cast<i32>(files_.size() - 1);
  }
  void set_format(Format format) { format_ = format; }
  void add_finding(Finding f) { findings_.push_back(std::move(f)); }
  std::vector<Tensor> tensors;

  i64 tensor_count() const override { return static_cast<i64>(tensors.size()); }
  std::string_view name(i64 t) const override { return at(t).name; }
  DType dtype(i64 t) const override { return at(t).dtype; }
  std::span<const i64> dims(i64 t) const override { return at(t).dims; }
  i64 chunk_count(i64 t) const override { return static_cast<i64>(at(t).pieces.size()); }
  Chunk chunk(i64 t, i64 i) const override {
    const Piece& p = at(t).pieces[static_cast<std::size_t>(i)];
    return {.offsets = p.offsets,
            .sizes = p.sizes,
            .file = p.data.file,
            .rank = p.rank,
            .record_offset = p.data.offset,
            .record_bytes = dtype_bytes(p.data.dtype, Shape(p.sizes).items()),
            .replica = p.replica};
  }
  ChunkData resolve(i64 t, i64 i) const override { return at(t).pieces[static_cast<std::size_t>(i)].data; }

 private:
  const Tensor& at(i64 t) const { return tensors[static_cast<std::size_t>(t)]; }
};

}  // namespace mckpt::impl
