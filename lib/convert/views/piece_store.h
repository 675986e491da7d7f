// PieceStore: a checkpoint seen with the names and tensors of another format. Its tensors consist of pieces
// of the source's tensors: one layer of a stack, one expert, some rows. Nothing is copied; every chunk is
// where the source stores it, and only its box and its first byte are computed anew:
//
//   decoder.layers.mlp.linear_fc1.weight [2, 28, 12] model.module.decoder.layers.1.mlp.linear_fc1.weight_v
//   chunk [1, 0, 0] + [1, 28, 12]                   -->  [14, 12], chunk [0, 0] + [14, 12]
//
// Every command uses such a view like any other store. Its memory is a few numbers for each chunk.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "io/store/store_view.h"
#include "io/store/unrounded.h"

namespace mckpt::impl {

// The indices of a piece along one dimension of its tensor, and their places: the indices first, first +
// step, ... are one behind the other in a dimension of the tensor that the piece is put into, from `to` on.
struct PieceAxis {
  i64 first = 0, count = 1, step = 1;
  i64 to_dim = -1;  // -1: in none, of one index
  i64 to = 0;
};

// A piece of one tensor of the source: the indices `at` along its first dimensions, and then rows of the next
// dimension. The piece of the picture is {tensor, {1}, 14, 14, 0}: layer 1, rows 14 to 27. With a step of 2
// it is rows 14, 16, ... 40: 14 rows all the same.
struct StorePiece {
  i64 tensor = 0;                // of the source
  std::vector<i64> at{};         // indices along its first dimensions, which the piece does not have
  i64 first_row = 0, rows = -1;  // in the dimension behind `at`; -1: all of it, or no such dimension
  i64 to_row = 0;                // the first of these rows in the tensor that the piece is put into
  i64 row_step = 1;              // from one row to the next; above 1 `rows` is given
  // The piece's box in the tensor begins here, beside `to_row`; one number for each dimension, or none: at 0.
  // pre: no row_step.
  std::vector<i64> to{};
  bool replica = false;  // the same box as an earlier piece's, with the same items
  // One for each dimension of the tensor, in any order of dimensions: [4, 20, 12] with the first two
  // dimensions changed has {0, 4, 1, 1, 0}, {0, 20, 1, 0, 0} and {0, 12, 1, 2, 0}. pre: nothing else but
  // `replica` is set.
  std::vector<PieceAxis> axes{};
  // Not items of the tensor but zeros of its type: a box of these sizes, from `to` on. pre: nothing else is
  // set.
  std::vector<i64> zeros{};
  // The tensor in this shape, [16, 96] as [16, 3, 2, 4, 4]. pre: nothing else but `replica` is set.
  std::vector<i64> as{};
};

// The view. It owns the source. It is filled by one thread with add() and its siblings; then all functions
// are const and as thread-safe as the source's.
class PieceStore final : public StoreView, public UnroundedValues {
 public:
  // A view without tensors and objects. Root, files, format and facts are the source's.
  explicit PieceStore(std::unique_ptr<Store> source);

  // Adds a tensor made of pieces. pre: there is a piece, and the pieces tile the shape. Throws kBadShards if
  // the pieces have different data types.
  void add(std::string name, std::vector<i64> dims, std::vector<StorePiece> pieces);
  // Adds an object of the source, unchanged, under another name.
  void add_object(std::string name, i64 object);

  i64 tensor_count() const override { return std::ssize(tensors_); }
  std::string_view name(i64 t) const override { return of(t).name; }
  DType dtype(i64 t) const override { return source().dtype(of(t).dtype_of); }
  std::span<const i64> dims(i64 t) const override { return of(t).dims; }
  i64 chunk_count(i64 t) const override { return of(t).chunks; }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;
  std::shared_ptr<const PickleValue> object(i64 index) const override;
  // Sums and checks of the source are about its tensors and objects, which the view does not have.
  void each_checksum(const std::function<void(const Checksum&)>&) const override {}
  std::optional<std::vector<Finding>> check(int) const override { return std::nullopt; }
  bool is_rounded(i64 t) const override;
  ChunkData resolve_unrounded(i64 t, i64 index) const override;
  const UnroundedValues* unrounded() const override { return this; }

 private:
  // The part of a piece that one chunk of the source contains. Rows that are apart are a chunk each, and then
  // `offsets` has the offsets of all these chunks, one after the other.
  struct Part {
    i64 tensor, chunk;  // of the source
    i64 first_item;     // of this part, in the chunk's own order
    std::vector<i64> offsets, sizes;
    i64 step_items = 0;   // from one row to the next
    i64 first_chunk = 0;  // of this view's tensor
    bool replica = false;
    std::vector<i64> strides{};  // of the items in the chunk; none: row-major
    bool zeros = false;
  };
  // One chunk of the view: its part, and which row of the part.
  struct Place {
    const Part& part;
    i64 row;
  };
  struct Tensor {
    std::string name;
    i64 dtype_of;  // a tensor of the source
    std::vector<i64> dims;
    std::vector<Part> parts;
    i64 chunks = 0;
  };
  // The chunks of one tensor of the source by where they begin in the first dimension.
  struct ByBegin {
    i64 tensor = -1, longest = 0;
    std::vector<std::pair<i64, i64>> chunks;  // begin and number, ascending
  };
  const Tensor& of(i64 t) const { return tensors_[t]; }
  // The part of the piece in the resolved chunk of the source.
  ChunkData piece_of(ChunkData out, i64 t, const Part& part, i64 row) const;
  std::vector<i64> chunks_near(const StorePiece& piece);
  std::optional<Part> part_of(const StorePiece& piece, i64 chunk) const;
  std::optional<Part> part_along(const StorePiece& piece, i64 chunk, std::size_t rank) const;
  std::vector<Part> reshaped(const StorePiece& piece, i64 chunk) const;
  static std::optional<Part> rows_apart(Part part, const StorePiece& piece, i64 first_item);
  Place place(i64 t, i64 index) const;
  ChunkData resolved(const Part& part) const;
  ChunkData zeros(const Part& part, DType type) const;

  std::deque<Tensor> tensors_;
  std::vector<i64> object_of_;
  ByBegin by_begin_;  // of the tensor of the last piece

  // The chunk of the source that was resolved last for rows that are apart: its other rows follow.
  mutable std::mutex mutex_;
  mutable std::pair<i64, i64> resolved_of_{-1, -1};
  mutable ChunkData resolved_;
};

}  // namespace mckpt::impl
