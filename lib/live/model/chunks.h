// LiveChunks: what one rank's model stores, as chunks of a key table. A "file" is a stretch of memory, the
// stored weights of a group or a buffer, so that the jobs that read and write files also fill and read a
// model:
//
//   file 0   stored weights of group 0     [ linear_qkv rows 0-11 | linear_proj rows 0-5 ]     2 chunks
//   file 1   stored weights of group 1     ...
//   file 9   the buffer expert_bias        1 chunk
#pragma once

#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"

namespace mckpt::impl {

class LiveGroup;
class LiveModel;
struct FsdpTensor;

// The chunks of one rank, made anew after every change of the sharding. const functions are thread-safe.
class LiveChunks final : public ChunkList {
 public:
  // pre: the model is sharded, and the table is of the same model and grid. Both outlive this object.
  LiveChunks(const LiveModel& model, const KeyTable& keys);

  i64 size() const override { return std::ssize(chunks_); }
  i32 key(i64 c) const override { return at(c).key; }
  Box box(i64 c) const override { return {at(c).offsets, at(c).sizes}; }
  std::span<const i64> dims(i64 c) const override { return keys_[key(c)].shape.dims(); }
  DType dtype(i64 c) const override { return at(c).dtype; }
  std::string name(i64 c) const override { return keys_[key(c)].name; }
  Place place(i64 c) const override { return {at(c).file, at(c).offset, at(c).dtype}; }

  // The chunk of a key whose box begins at `offsets`; -1: this rank has none.
  i64 find(i32 key, std::span<const i64> offsets) const;
  i32 file_count() const { return static_cast<i32>(files_.size()); }
  // The device memory of a file, or of a chunk in it. Empty unless the model is loaded.
  std::span<u8> memory(i32 file) const;
  std::span<u8> bytes(i64 chunk) const;

 private:
  struct Entry {
    i32 key, file;
    i64 offset;
    DType dtype;
    std::vector<i64> offsets, sizes;
  };
  struct File {
    LiveGroup* group;  // null: a buffer
    i32 buffer;        // the parameter
  };
  const Entry& at(i64 c) const { return chunks_[c]; }
  void add(const FsdpTensor& tensor, i32 key);

  const LiveModel& model_;
  const KeyTable& keys_;
  std::vector<File> files_;
  std::unordered_map<LiveGroup*, i32> file_of_;
  std::vector<Entry> chunks_;
  std::map<std::pair<i32, std::vector<i64>>, i64> by_box_;
};

}  // namespace mckpt::impl
