// ReshardJob: tensors of a store into chunks of other bounds. One task is one tensor.
#pragma once

#include "convert/stored_chunks.h"
#include "io/copy_job.h"
#include "io/store_files.h"

namespace mckpt {

class ReshardJob final : public CopyJob {
 public:
  // The keys of `chunks` are tensors of the source. `layout`: where the chunks get their frames from; null
  // when they are only compared with. All outlive this. Throws kBadCast.
  ReshardJob(const Store& source, const ChunkList& chunks, const DcpLayout* layout);

  i64 task_count() const override { return std::ssize(tasks_); }
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
  const DcpTensorFrame& frame_of(const Region& region) const { return *layout_->chunk(region.tensor).frame; }

  const Store& source_;
  const ChunkList& chunks_;
  const DcpLayout* layout_;
  StoreBytes bytes_;
  std::vector<Task> tasks_;
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
