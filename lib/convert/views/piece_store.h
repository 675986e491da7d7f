// PieceStore: a checkpoint with the names and tensors of another format. Its tensors consist of pieces of the
// source's tensors: one layer of a stack, one expert, some rows. Nothing is copied; each chunk is where the
// source has it:
//
//   decoder.layers.mlp.linear_fc1.weight [2, 28, 12] model.module.decoder.layers.1.mlp.linear_fc1.weight_v
//   chunk [1, 0, 0] + [1, 28, 12]                   -->  [14, 12], chunk [0, 0] + [14, 12]
#pragma once

#include <deque>
#include <memory>

#include "io/store/store.h"

namespace mckpt::impl {

struct StorePiece {
  i64 tensor = 0;                // of the source
  std::vector<i64> at{};         // indices along its first dimensions, which the piece does not have
  i64 first_row = 0, rows = -1;  // of the dimension behind these; -1: all, and the tensor may have none
  i64 to_row = 0;                // their first row in the whole
};

class PieceStore final : public Store {
 public:
  // Has no tensors and objects until they are added. Keeps the source; has its root, files and facts.
  explicit PieceStore(std::unique_ptr<Store> source);

  // pre: the pieces tile the shape.
  void add(std::string name, std::vector<i64> dims, std::vector<StorePiece> pieces);
  // An object of the source under another name, as it is.
  void add_object(std::string name, i64 object);
  // One that no file has: its pickle.
  void make_object(std::string name, std::string pickle) {
    made_.push_back({std::move(name), std::move(pickle)});
  }

  const Store& source() const { return *source_; }
  struct Made {
    std::string name, pickle;
  };
  const std::vector<Made>& made() const { return made_; }

  i64 tensor_count() const override { return std::ssize(tensors_); }
  std::string_view name(i64 t) const override { return of(t).name; }
  DType dtype(i64 t) const override { return source_->dtype(of(t).dtype_of); }
  std::span<const i64> dims(i64 t) const override { return of(t).dims; }
  i64 chunk_count(i64 t) const override { return std::ssize(of(t).chunks); }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;
  std::shared_ptr<const PickleValue> object(i64 index) const override;

 private:
  struct Part {
    i64 tensor, chunk;  // of the source
    i64 first_item;     // of the part of the chunk in the box
    std::vector<i64> offsets, sizes;
  };
  struct Tensor {
    std::string name;
    i64 dtype_of;  // a tensor of the source
    std::vector<i64> dims;
    std::vector<Part> chunks;
  };
  const Tensor& of(i64 t) const { return tensors_[t]; }
  std::optional<Part> part_of(const StorePiece& piece, i64 chunk) const;

  std::unique_ptr<Store> source_;
  std::deque<Tensor> tensors_;
  std::vector<i64> object_of_;
  std::vector<Made> made_;
};

}  // namespace mckpt::impl
