// The jobs of all conversions. Each function chooses the two sides of a ChunkJob, the unit of chunks that one
// task writes, and the cast of a chunk; tasks_of() in chunk_jobs.cc makes the tasks of the three:
//
//   job        from                  to                    a task writes                            reads a source
//   import     tensors of a model    chunks of a dialect   all chunks that the same tensors feed    once
//   export     chunks of a dialect   tensors of a model    one tensor                               once a tensor
//   reshard    boxes of keys         boxes of keys         all chunks of one key                    once
//   gather     chunks of a dialect   chunks of a dialect   one chunk                                when needed
//   keyed      chunks of a dialect   chunks of a dialect   all chunks of one parameter or state     once
//   tensors    tensors of a store    boxes of tensors      all chunks of one tensor of the result   once a tensor
//   pairs      boxes of keys         boxes of keys         all boxes of one chunk of the source     once
//
// The tasks are chosen so that a source is read once where one task can hold all its readers. A task has one
// cast: chunks of different types are never in one task. The cost of making a job is proportional to its
// chunks; no data are read.
#pragma once

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/tensor_places.h"

namespace mckpt::impl {

class KeyTable;
class ModelMap;
class Store;

// pre, for all functions here: the arguments outlive the job. All throw kBadCast if values cannot be cast to
// the type of their destination.

// From the tensors of a Hugging Face model, however their items are stored, to the chunks of a checkpoint.
// pre: the store has the tensors of keys.map().sources(), in that order; the keys of `to` are keys of the
// table.
ChunkJob import_job(const Store& source, const KeyTable& keys, const ChunkList& to);

// From the chunks of a checkpoint to the tensors of a Hugging Face model. pre: the keys of `from` are keys of
// the table, the keys of `to` are numbers of keys.map().sources(). Throws kUnaccounted if no chunk holds
// anything of a tensor of `to`. `checkpoint` may be null: tasks can then be planned, but their sources have
// no bytes.
ChunkJob export_job(const Store* checkpoint, const KeyTable& keys, const ChunkList& from,
                    const ChunkList& to);

// The tables of parameters that are more than boxes of the same tensors. Fused tensors that are stored cell
// after cell, where the number of tensor-parallel cells differs between the two sides, are not boxes of one
// tensor: the two sides meet at the items of the model's own tensors:
//
//   linear_fc1 of 2 cells   [gate 0-3 | up 0-3 | gate 4-7 | up 4-7]
//   linear_fc1 of 1 cell    [gate 0-7 | up 0-7]
//
// The vocabulary may have other rows on the two sides. Rows that only the result has are zeros; rows that
// only the source has are padding, which is not wanted.
struct FusedTables {
  const KeyTable& from;
  const KeyTable& to;
  std::vector<i32> key_of;  // in both tables, by tensor of the source; -1: the tensor is not stored this way
  std::vector<bool> resized{};  // by tensor of the source: has other rows in the result; empty: none has
};
// From boxes of a checkpoint's keys to other boxes of the same keys. pre: a key of `to` is the number of a
// tensor of the source.
ChunkJob reshard_job(const Store& source, const ChunkList& to, const FusedTables* fused = nullptr,
                     std::vector<CarriedRecord> records = {});

// Chunks with the table that gives their keys a meaning.
struct KeyedChunks {
  const KeyTable& keys;
  const ChunkList& chunks;
};
// From the chunks of a checkpoint to those that a rank of a run holds. The two tables are of one model; grid,
// strategy, rows of the vocabulary, and whether fused parameters are whole or in parts may differ. Keys that
// both sides store alike keep all of their items, also padding. pre: `from` is stored in the files of
// `checkpoint`.
ChunkJob gather_job(const Store& checkpoint, const KeyedChunks& from, const KeyedChunks& to);

// From keys of `checkpoint` to the keys of another dialect. Chunks of a group (below 0: none) hold the same
// items, as boxes on both sides or on none; `resized` groups have other rows. Throws kUnaccounted for a group
// of `to` alone.
struct GroupedSide {
  ChunkSide side;
  std::vector<i32> group;
};
ChunkJob keyed_job(const Store& checkpoint, const GroupedSide& from, const GroupedSide& to,
                   std::vector<bool> resized, i64 groups);
// From the tensors of a store, however their items are stored, to whole tensors or boxes of them. One task
// for each tensor of the result, with a cast to its type. pre: the key of a chunk of `to` is the number of a
// tensor of the source, of which the result may have several. Throws kUnsupportedTensor for elements smaller
// than a byte.
ChunkJob tensor_job(const Store& source, const ChunkList& to, std::vector<CarriedRecord> records = {});

// From whole chunks to boxes of them. pre: every chunk c of `to` is a box of the chunk source_of[c] of
// `from`, and has its type.
ChunkJob pairs_job(const ChunkList& from, ChunkJob::Files files, const ChunkList& to,
                   std::span<const i32> source_of, std::vector<CarriedRecord> records = {});

// The files of a store, for a job that reads all of them. The function keeps the files open; the store
// outlives it.
ChunkJob::Files files_of(const Store& store);

// The wanted tensors as a list of chunks: each tensor is one chunk that is all of it, under its number in the
// table.
class PlacedTensors final : public ChunkList {
 public:
  // Both outlive this.
  PlacedTensors(const ModelMap& map, const TensorPlaces& places);

  i64 size() const override { return std::ssize(tensors_); }
  i32 key(i64 c) const override { return tensors_[c]; }
  Box box(i64 c) const override;
  std::span<const i64> dims(i64 c) const override { return at(c).shape.dims(); }
  DType dtype(i64 c) const override { return at(c).dtype; }
  Place place(i64 c) const override { return {at(c).file, at(c).offset, at(c).dtype}; }
  std::string name(i64 c) const override;

 private:
  const TensorPlaces::Place& at(i64 c) const { return places_.tensors[tensors_[c]]; }

  const ModelMap& map_;
  const TensorPlaces& places_;
  std::vector<i32> tensors_;
};

}  // namespace mckpt::impl
