// LiveChunks: what one rank's model stores, as chunks of a key table. A "file" is a stretch of memory: the
// stored weights of a group, or a buffer; so that the jobs that read and write files fill and read a model.
#pragma once

#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"

namespace mckpt::impl {

class LiveGroup;
class LiveModel;
struct FsdpTensor;

class LiveChunks final : public ChunkList {
 public:
  // The model is sharded, and the table is of the same model and grid. Both outlive this.
  LiveChunks(const LiveModel& model, const KeyTable& keys);

  i64 size() const override { return std::ssize(chunks_); }
  i32 key(i64 c) const override { return at(c).key; }
  Box box(i64 c) const override { return {at(c).offsets, at(c).sizes}; }
  std::span<const i64> dims(i64 c) const override { return keys_[key(c)].shape.dims(); }
  DType dtype(i64 c) const override { return at(c).dtype; }
  std::string name(i64 c) const override { return keys_[key(c)].name; }
  Place place(i64 c) const override { return {at(c).file, at(c).offset, at(c).dtype, std::nullopt}; }

  // The chunk of a key whose box begins there; -1: this rank has none.
  i64 find(i32 key, std::span<const i64> offsets) const;
  i32 file_count() const { return static_cast<i32>(files_.size()); }
  // Empty unless the model is loaded.
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
