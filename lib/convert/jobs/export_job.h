// ExportPlan: the chunks of a model into Hugging Face tensors, wherever the chunks are. One task is one
// tensor; that every item of it is written exactly once is proved before the first byte. ExportJob: the same
// with the chunks of a checkpoint on disk.
#pragma once

#include "convert/keys/stored_chunks.h"
#include "io/copy/job.h"
#include "io/copy/read_sums.h"
#include "io/store/store_files.h"

namespace mckpt {

// Where the tensors of a model's source table lie, or are to lie, in files.
struct TensorPlaces {
  struct Place {
    i32 file = -1;  // -1: it is not asked for
    i64 offset = 0;
    DType dtype = DType::kBF16;
    Shape shape;
  };
  std::vector<Place> tensors;  // in the order of the table
};

class ExportPlan : public RegionNames {
 public:
  // All outlive this. Throws kUnaccounted where no chunk holds a tensor that is asked for, kBadCast.
  ExportPlan(const KeyTable& keys, const ChunkList& chunks, const TensorPlaces& places,
             ReadSums* sums = nullptr);

  i64 task_count() const { return std::ssize(tasks_); }
  CopyTask task(i64 index) const { return make(index, false); }  // sources: chunks in files of their places
  CopyTask outline(i64 index) const { return make(index, true); }
  i64 task_bytes(i64 index) const;

  Conversion conversion_of(i64 index) const { return tasks_[static_cast<std::size_t>(index)].conversion; }
  std::string tensor_of(const Region& region) const override { return std::string(name_of(region.tensor)); }
  std::string_view name_of(i32 tensor) const { return keys_.map().sources()[tensor].name; }
  i32 tensor_of_task(i64 index) const { return tasks_[static_cast<std::size_t>(index)].tensor; }

 private:
  struct Task {
    i32 tensor;   // to be written
    i32 content;  // whose items it has: itself, or the tensor that it repeats
    Conversion conversion;
  };
  CopyTask make(i64 index, bool outline) const;
  void list_chunks();
  void add_task(i32 tensor, i32 content);
  std::span<const i32> chunks_of(i32 parameter) const;

  const KeyTable& keys_;
  const ChunkList& chunks_;
  const TensorPlaces& places_;
  ReadSums* sums_;  // is told of the chunks that are going to be read
  std::vector<Task> tasks_;
  std::vector<i64> begin_;  // by parameter, in by_parameter_
  std::vector<i32> by_parameter_;
  std::vector<std::vector<i32>> readers_;  // parameters, by source tensor
};

class ExportJob final : public CopyJob {
 public:
  ExportJob(const Store& checkpoint, const KeyTable& keys, const ChunkList& chunks,
            const TensorPlaces& places, ReadSums* sums = nullptr)
      : chunks_(chunks), plan_(keys, chunks, places, sums), bytes_(checkpoint) {}

  const ExportPlan& plan() const { return plan_; }
  i64 task_count() const override { return plan_.task_count(); }
  CopyTask task(i64 index) const override { return plan_.task(index); }
  CopyTask outline(i64 index) const override { return plan_.outline(index); }
  // Keys of the table.
  i32 source_tensor(const Region& region) const override { return chunks_.key(region.tensor); }
  i64 task_bytes(i64 index) const override { return plan_.task_bytes(index); }
  std::string tensor_of(const Region& region) const override { return plan_.tensor_of(region); }
  const ByteSource& source(i32 file) const override { return bytes_[file]; }

 private:
  const ChunkList& chunks_;
  ExportPlan plan_;
  StoreBytes bytes_;
};

}  // namespace mckpt
