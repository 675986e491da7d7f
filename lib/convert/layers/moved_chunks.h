// MovedChunks: the chunks of a checkpoint whose layers get other names, laid out for the result. Boxes and
// ranks stay: a chunk of the source becomes one chunk, or one for each layer or part that it has a piece of.
// As a side of a job each of them is the box of the source that it holds:
//
//   source   decoder.layers.X [4, 8, 12]     chunk [2, 0, 0] + [2, 8, 12]
//   result   decoder.layers.3.X [8, 12]      chunk [0, 0] + [8, 12]: the box [3, 0, 0] + [1, 8, 12] of the source
#pragma once

#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"
#include "io/dcp/layout.h"

namespace mckpt::impl {

class ChunkJob;
struct CarriedRecord;
struct LayerMigration;
struct MovedPiece;

// Ranks that wrote the source: files of the layout. Throws kBadMetadata where a file is of a rank that no run
// has.
i64 ranks_of_files(const Store& source);
// The rank that wrote a file of the source; 0 where its name has none.
i64 rank_of_file(const Store& source, i32 file);

class MovedChunks final : public ChunkList {
 public:
  // Adds the tensors to the layout, which has no keys, in the order of their sources' files. All outlive this.
  MovedChunks(const Store& source, const LayerMigration& migration, DcpLayout& layout, bool nested);

  // The job that fills them. `records`: objects that the layout has behind them.
  ChunkJob job(std::vector<CarriedRecord> records) const;

  i64 size() const override { return std::ssize(source_of_); }
  i32 key(i64 c) const override { return sources_.key(source_of_[c]); }  // a tensor of the source
  Box box(i64 c) const override;
  std::span<const i64> dims(i64 c) const override { return sources_.dims(source_of_[c]); }
  DType dtype(i64 c) const override { return sources_.dtype(source_of_[c]); }
  Place place(i64 c) const override;
  i32 tensor(i64 c) const override { return layout_.chunk(c).key; }
  std::string name(i64 c) const override { return layout_.key(tensor(c)).name.text; }
  const DcpTensorFrame* frame(i64 c) const override { return layout_.chunk(c).frame; }

 private:
  // Of the source, with those of no items, in the order of the ranks and of their files.
  class Sources final : public StoreChunks {
   public:
    explicit Sources(const Store& store) : StoreChunks(store) {}
    void add_all(const std::vector<bool>& used);
  };
  void add_target(i32 source, i32 key, const MovedPiece& piece);

  const Store& store_;
  DcpLayout& layout_;
  Sources sources_;
  std::vector<i32> source_of_;  // by chunk
  std::vector<i64> first_;      // number in numbers_, by chunk
  std::vector<i64> numbers_;    // of boxes of the source: offsets, then sizes
};

}  // namespace mckpt::impl
