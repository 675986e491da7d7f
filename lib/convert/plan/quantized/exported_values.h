// ExportedValues: a checkpoint of Megatron seen as the Hugging Face tensors that an export of it writes.
// Nothing is written: a read of bytes [a, b) of a tensor carries out that part of the export's task, into the
// memory of the reader.
//
//   decoder.layers.0.mlp.linear_fc1.weight, 2 chunks    -- task of the export -->    gate_proj, up_proj: bytes [a, b)
//
// So what computes with the tensors of a model, as a quantising view does, reads a checkpoint as it reads a
// folder.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/open/opened.h"
#include "convert/plan/hf_layout.h"
#include "io/store/store.h"

namespace mckpt::impl {

// Owns the opened checkpoint. As thread-safe as every store.
class ExportedValues final : public Store {
 public:
  // `types`: by tensor of the model's source table. Throws what HfLayout and export_job() throw.
  // pre: `model` is sharded.
  ExportedValues(Opened model, const std::vector<DType>& types);
  ~ExportedValues() override;

  const Opened& opened() const { return opened_; }
  // The layout that an export writes, for its proof.
  const HfLayout& layout() const { return hf_; }
  const PlacedTensors& tensors() const { return tensors_; }

  i64 tensor_count() const override { return tensors_.size(); }
  std::string_view name(i64 t) const override;
  DType dtype(i64 t) const override { return tensors_.dtype(t); }
  std::span<const i64> dims(i64 t) const override { return tensors_.dims(t); }
  i64 chunk_count(i64) const override { return 1; }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;

 private:
  class Bytes;
  struct Hand;  // a worker with the task that it did last
  std::unique_ptr<Hand> take(i64 task, bool large) const;
  void give(std::unique_ptr<Hand> hand, bool large) const;

  Opened opened_;
  const CheckpointModel& model_;
  HfLayout hf_;
  PlacedTensors tensors_;
  ChunkJob job_;
  std::vector<i64> task_of_;  // by tensor
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Hand>> idle_;
  mutable std::vector<std::unique_ptr<Hand>> large_;  // idle ones with memory for large reads
};

}  // namespace mckpt::impl
