// MovedChunks: the chunks of a checkpoint whose layers get other names, laid out for the result. Chunks keep
// their ranks: a chunk of the source becomes one chunk, or one for each layer or part of which it has a
// piece. As a side of a job, each of them is the box of the source that it holds:
//
//   source   decoder.layers.X [4, 8, 12]     chunk [2, 0, 0] + [2, 8, 12]
//   result   decoder.layers.3.X [8, 12]      chunk [0, 0] + [8, 12]: the box [3, 0, 0] + [1, 8, 12] of the source
//
// Data are copied in the order of the source's files, so both sides are read and written forwards.
#pragma once

#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"
#include "io/dcp/write/layout.h"

namespace mckpt::impl {

class ChunkJob;
struct CarriedRecord;
struct LayerMigration;
struct MovedPiece;

// The number of ranks that wrote the source, which is the number of files of the layout. Throws kBadMetadata
// if the name of a file has a rank of 2^20 or more.
i64 ranks_of_files(const Store& source);
// The rank that wrote a file of the source, by the file's name; 0 if the name has no rank.
i64 rank_of_file(const Store& source, i32 file);

// The target side of the job. It refers to the source and the layout; the migration is read by the
// constructor only.
class MovedChunks final : public ChunkList {
 public:
  // Adds the tensors to the layout, which must have no keys yet, and their chunks in the order of the
  // source's files. `nested`: names get their places in nested dicts. The store and the layout outlive this
  // object.
  MovedChunks(const Store& source, const LayerMigration& migration, DcpLayout& layout, bool nested);

  // The job that fills the chunks. `records`: objects that the layout has behind them. This object outlives
  // the job.
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
  // The chunks of the source, including chunks of no items, in the order of the ranks and of their files.
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
