// The jobs of the modes: each says what its two sides are, and which chunks make a task together.
//
//   job        from                  to                    a task is                             read
//   import     tensors of a model    chunks of a dialect   all that is fed by the same tensors   once
//   export     chunks of a dialect   tensors of a model    one tensor                            once for each
//   reshard    boxes of keys         boxes of keys         one key                               once
//   gather     chunks of a dialect   chunks of a dialect   one chunk                             as needed
//   pairs      boxes of keys         boxes of keys         one chunk of the source               once
#pragma once

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/tensor_places.h"

namespace mckpt::impl {

class KeyTable;
class ModelMap;
class Store;

// What all of them are given outlives the job. Each throws kBadCast where values cannot get the type of their
// destination.

// The tensors of the store are those of keys.map().sources(), in that order; the keys of `to` are the table's.
ChunkJob import_job(const Store& source, const KeyTable& keys, const ChunkList& to);

// The keys of `from` are the table's, those of `to` numbers of keys.map().sources(). Throws kUnaccounted where
// no chunk holds a tensor of `to`. Without a checkpoint the sources have places and no bytes.
ChunkJob export_job(const Store* checkpoint, const KeyTable& keys, const ChunkList& from,
                    const ChunkList& to);

// Fused tensors that are stored cell after cell, where the number of cells differs between the two sides: they
// take the way over the model's own items.
struct FusedTables {
  const KeyTable& from;
  const KeyTable& to;
  std::vector<i32> key_of;  // in both tables, by tensor of the source; -1: it is no such tensor
};
// The keys of `to` are tensors of the source.
ChunkJob reshard_job(const Store& source, const ChunkList& to, const FusedTables* fused = nullptr,
                     std::vector<CarriedRecord> records = {});

// Two tables of one model, so that grid, strategy, and whether fused parameters are stored whole or in parts
// may differ. The files are those of `checkpoint`.
struct KeyedChunks {
  const KeyTable& keys;
  const ChunkList& chunks;
};
ChunkJob gather_job(const Store& checkpoint, const KeyedChunks& from, const KeyedChunks& to);

// Every chunk of `to` is a box of the chunk source_of[c] of `from`, and of its type.
ChunkJob pairs_job(const ChunkList& from, ChunkJob::Files files, const ChunkList& to,
                   std::span<const i32> source_of, std::vector<CarriedRecord> records = {});

// All files of a store.
ChunkJob::Files files_of(const Store& store);

// The tensors that are asked for, each one chunk under its number in the table.
class PlacedTensors final : public ChunkList {
 public:
  // Both outlive this.
  PlacedTensors(const ModelMap& map, const TensorPlaces& places);

  i64 size() const override { return std::ssize(tensors_); }
  i32 key(i64 c) const override { return tensors_[c]; }
  Box box(i64 c) const override;
  std::span<const i64> dims(i64 c) const override { return at(c).shape.dims(); }
  DType dtype(i64 c) const override { return at(c).dtype; }
  Place place(i64 c) const override { return {at(c).file, at(c).offset, at(c).dtype, std::nullopt}; }
  std::string name(i64 c) const override;

 private:
  const TensorPlaces::Place& at(i64 c) const { return places_.tensors[tensors_[c]]; }

  const ModelMap& map_;
  const TensorPlaces& places_;
  std::vector<i32> tensors_;
};

}  // namespace mckpt::impl
