// ReshardJob: tensors of a store into chunks of other bounds. One task is one tensor.
#pragma once

#include "convert/stored_chunks.h"
#include "io/copy_job.h"
#include "io/read_sums.h"
#include "io/store_files.h"

namespace mckpt {

class ReshardJob final : public CopyJob {
 public:
  // Fused tensors that are stored cell after cell, where the number of cells differs between the two sides:
  // they take the way over the model's own items.
  struct Fused {
    const KeyTable& from;
    const KeyTable& to;
    std::vector<i32> key_of;  // in both tables, by tensor of the source; -1: it is no such tensor
  };
  // A record that is carried along as it is.
  struct Record {
    i32 from_file, to_file;
    i64 from, to, bytes;
  };

  // The keys of `chunks` are tensors of the source. `layout`: where the chunks get their frames from; null
  // when they are only compared with. All outlive this. Throws kBadCast.
  ReshardJob(const Store& source, const ChunkList& chunks, const DcpLayout* layout,
             const Fused* fused = nullptr, std::vector<Record> records = {}, ReadSums* sums = nullptr);

  i64 task_count() const override { return std::ssize(tasks_) + std::ssize(records_); }
  CopyTask task(i64 index) const override;
  i64 task_bytes(i64 index) const override;
  const ByteSource& source(i32 file) const override { return bytes_[file]; }
  Frame frame(const Region& region) const override;
  void write_head(const Region& region, std::span<u8> to) const override;
  void write_tail(const Region& region, u32 crc32, std::span<u8> to) const override;

 private:
  struct Task {
    i32 tensor;
    std::vector<i32> chunks;
  };
  CopyTask record_task(const Record& record) const;
  void append_moves(i32 tensor, const ChunkList::Box& from, const ChunkList::Box& to, i32 region,
                    std::vector<Move>& out) const;
  const DcpTensorFrame& frame_of(const Region& region) const { return *layout_->chunk(region.tensor).frame; }

  const Store& source_;
  const ChunkList& chunks_;
  const DcpLayout* layout_;
  const Fused* fused_;
  ReadSums* sums_;  // is told of the chunks that are going to be read
  StoreBytes bytes_;
  std::vector<Task> tasks_;
  std::vector<Record> records_;
};

// The chunks of a store's tensors, by the tensors of the same names in another store. Tensors that the other
// has not are left out. Both outlive this.
class NamedChunks final : public ChunkList {
 public:
  NamedChunks(const Store& store, const Store& other);
  // Those of one tensor alone, by another of the same store.
  NamedChunks(const Store& store, i32 tensor, i32 other);

  i64 size() const override { return std::ssize(chunks_); }
  i32 key(i64 c) const override { return at(c).key; }
  Box box(i64 c) const override;
  DType dtype(i64 c) const override { return store_.dtype(at(c).tensor); }
  Place place(i64 c) const override;

 private:
  struct Entry {
    i32 key, tensor, chunk;
  };
  const Entry& at(i64 c) const { return chunks_[static_cast<std::size_t>(c)]; }
  void add(i32 tensor, i32 other);

  const Store& store_;
  std::vector<Entry> chunks_;
};

}  // namespace mckpt
