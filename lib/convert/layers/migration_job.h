// MigrationJob: the chunks of a checkpoint under other names. Boxes and ranks stay: a chunk becomes one
// chunk, or one for each layer or part that it has a piece of. One task is one chunk of the source.
#pragma once

#include "convert/jobs/carried_record.h"
#include "convert/jobs/framed_job.h"
#include "convert/layers/layer_migration.h"
#include "io/copy/read_sums.h"
#include "io/store/store_files.h"

namespace mckpt {

class MigrationJob final : public FramedJob {
 public:
  // Adds the tensors to the layout, which has no keys, in the order of their sources' files; records of
  // objects are added behind with add_record(). All outlive this.
  MigrationJob(const Store& source, const LayerMigration& migration, DcpLayout& layout, bool nested,
               ReadSums* sums);

  // An object of the source that is carried along as it is.
  void add_record(const MovedObject& object);

  i64 task_count() const override { return std::ssize(chunks_) + std::ssize(records_); }
  CopyTask task(i64 index) const override { return make(index, false); }
  CopyTask outline(i64 index) const override { return make(index, true); }
  std::string tensor_of(const Region& region) const override {
    return region.tensor < 0 ? "" : layout_.key(layout_.chunk(region.tensor).key).name.text;
  }
  i64 task_bytes(i64 index) const override;
  const ByteSource& source(i32 file) const override { return bytes_[file]; }

  // Ranks that wrote the source: files of the layout.
  static i64 ranks_of(const Store& source);
  // The rank that wrote the object.
  static i32 rank_of(const Store& source, const Object& object);

 private:
  struct SourceChunk {
    i32 tensor, chunk;
    i64 first_target = 0;  // in the layout; up to that of the next
  };
  CopyTask make(i64 index, bool outline) const;
  void list_chunks();
  void add_targets(const SourceChunk& source, const LayerMigration& migration);
  i64 end_target(std::size_t chunk) const;

  const Store& source_;
  DcpLayout& layout_;
  bool nested_;
  ReadSums* sums_;
  StoreBytes bytes_;
  std::vector<SourceChunk> chunks_;
  std::vector<MovedPiece> piece_of_;                    // by chunk of the layout
  std::vector<std::vector<std::pair<i32, i32>>> uses_;  // by tensor of the source: key, piece
  std::vector<CarriedRecord> records_;
};

}  // namespace mckpt
