// WideChunks: the chunks of the tested side in the types in which a diff compares them. Items of a narrower
// type, and items that are decoded when they are read, are in files that are made: no byte of a real one. So
// are the items of all but one of the keys that share bytes, since a byte that differs is told by its place.
//
//   tested  w  BF16 at byte 4160 of file 0            as compared   w  F32 at byte 0 of file 7, of 7 real ones
//   source  w  F32
//
//   tested  a, b  F32 at byte 64 of file 0            as compared   a  F32 at byte 64 of file 0
//                                                                   b  F32 at byte 0 of file 1, of one real one
//
// Rows of padding that one side alone has are left out: a chunk ends before them.
//
// TestedBytes reads both kinds of files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

// By chunk, whether bytes of it also belong to an earlier one with another key: of a storage that two tensors
// share. Reads no header of a chunk whose record is its own.
std::vector<bool> shared_chunks(const Store& store, const StoreChunks& chunks);

// The chunks of another list, in its order. As thread-safe as every list.
class WideChunks final : public StoreChunks {
 public:
  // `type`: in which the tensor of a key is compared; it has all values of the stored type. `apart`: what
  // shared_chunks() returned for the list. `rows`: how many rows of the tensor of a key are compared; empty,
  // or nothing: all. The store and the list outlive this.
  WideChunks(const Store& store, const StoreChunks& all, const std::vector<bool>& apart,
             const std::function<DType(i32 key)>& type,
             const std::function<std::optional<i64>(i32 key)>& rows);

  Box box(i64 c) const override;

  DType dtype(i64 c) const override { return types_[c]; }
  Place place(i64 c) const override;
  std::shared_ptr<const ByteSource> made(i32 file) const override;

 private:
  StoreBytes files_;
  i64 real_;  // files of the store; file real_ + c is made of chunk c
  std::vector<bool> apart_;
  std::vector<DType> types_;
  std::map<i64, std::vector<i64>> cut_;  // by chunk that ends before rows that are left out: its sizes
  mutable std::mutex mutex_;
  mutable std::map<i64, std::shared_ptr<const ByteSource>> made_;  // those used last, by chunk
};

// The bytes of the tested side, as the places of a list of its chunks say. Both outlive it. Thread-safe.
class TestedBytes {
 public:
  TestedBytes(const Store& there, const ChunkList& chunks);

  void read(i32 file, i64 offset, std::span<u8> to) const;

 private:
  StoreBytes files_;
  i64 real_;
  const ChunkList& chunks_;
};

}  // namespace mckpt::impl
