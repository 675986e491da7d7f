// ReshardJob: tensors of a store into chunks of other bounds. One task is one tensor.
#pragma once

#include <set>

#include "convert/jobs/carried_record.h"
#include "convert/jobs/framed_job.h"
#include "convert/keys/stored_chunks.h"
#include "io/copy/read_sums.h"
#include "io/store/store_files.h"

namespace mckpt {

class ReshardJob final : public FramedJob {
 public:
  // Fused tensors that are stored cell after cell, where the number of cells differs between the two sides:
  // they take the way over the model's own items.
  struct Fused {
    const KeyTable& from;
    const KeyTable& to;
    std::vector<i32> key_of;  // in both tables, by tensor of the source; -1: it is no such tensor
  };
  // The keys of `chunks` are tensors of the source. All outlive this. Throws kBadCast.
  ReshardJob(const Store& source, const ChunkList& chunks, const DcpLayout* layout,
             const Fused* fused = nullptr, std::vector<CarriedRecord> records = {}, ReadSums* sums = nullptr);

  i64 task_count() const override { return std::ssize(tasks_) + std::ssize(records_); }
  CopyTask task(i64 index) const override { return make(index, false); }
  CopyTask outline(i64 index) const override { return make(index, true); }
  i64 task_bytes(i64 index) const override;
  // Those that the task writes. pre: it is no carried record's
  std::span<const i32> chunks_of(i64 index) const { return tasks_[static_cast<std::size_t>(index)].chunks; }
  const ByteSource& source(i32 file) const override { return bytes_[file]; }
  std::string tensor_of(const Region& region) const override {
    return region.tensor < 0 ? std::string() : std::string(source_.name(chunks_.key(region.tensor)));
  }

 private:
  struct Task {
    i32 tensor;
    std::vector<i32> chunks;
  };
  CopyTask make(i64 index, bool outline) const;
  void append_moves(i32 tensor, const ChunkList::Box& from, const ChunkList::Box& to, i32 region,
                    std::vector<Move>& out) const;

  const Store& source_;
  const ChunkList& chunks_;
  const Fused* fused_;
  ReadSums* sums_;  // is told of the chunks that are going to be read
  StoreBytes bytes_;
  std::vector<Task> tasks_;
  std::vector<CarriedRecord> records_;
};

// The chunks of a store's tensors, by the tensors of the same names in another store. Tensors that the other
// has not are left out. Both outlive this.
class NamedChunks final : public StoreChunks {
 public:
  // `except`: tensors of the store that are left out as well.
  NamedChunks(const Store& store, const Store& other, const std::set<i64>& except = {});
  // Those of one tensor alone, by another of the same store.
  NamedChunks(const Store& store, i32 tensor, i32 other);
};

}  // namespace mckpt
