// ReadableChunks: chunks of a store as the source of a copy job, however their items are stored. The bytes of
// a chunk that is stored row by row are a stretch of a file, as in all lists of chunks; any other chunk (at
// strides, big-endian, compressed, computed by a view) is a source of its own, which reads it in row-major
// order; the bytes that a view computes are a source already:
//
//   a store of 2 files, in which chunk 3 of the list is stored at strides
//   file 0, file 1: those of the store      file 2 + 3: chunk 3, from byte 0 on
//
// How a chunk is stored is found out when its task is made, so that planning reads no header of a record.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "convert/jobs/read_memory.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"
#include "io/store/store_files.h"
#include "io/store/unrounded.h"

namespace mckpt::impl {

class ByteSource;

// The store outlives this. All functions are thread-safe.
class ReadableChunks final : public StoreChunks {
 public:
  // `tensors`: (tensor, key), as for ListedChunks. `unrounded`: by tensor of the store, whether its values
  // are wanted before they are rounded (io/store/unrounded.h), as float32; empty: of none.
  ReadableChunks(const Store& store, std::span<const std::pair<i32, i32>> tensors,
                 std::vector<bool> unrounded = {});
  ~ReadableChunks() override;

  // How many readers are kept, and how large they are: CopyJob::prepare() of the job that reads the chunks.
  void prepare(ReadMemory memory) const;

  DType dtype(i64 chunk) const override;
  Place place(i64 chunk) const override;
  // By the `file` of place().
  const ByteSource& source(i32 file) const;

 private:
  class ChunkBytes;
  // A reader with what it refers to.
  struct Reader;
  bool is_unrounded(i64 tensor) const { return !unrounded_.empty() && unrounded_[tensor]; }
  ChunkData resolved(const Entry& entry) const;
  std::unique_ptr<Reader> take_reader(i32 chunk) const;
  void put_back(std::unique_ptr<Reader> reader) const;

  StoreBytes files_;
  i32 file_count_;
  std::vector<bool> unrounded_;
  mutable std::mutex mutex_;
  mutable ReadMemory memory_;
  mutable std::map<i32, std::shared_ptr<const ByteSource>> apart_;  // by chunk
  mutable std::vector<std::unique_ptr<Reader>> idle_;               // the one used last is the last
};

}  // namespace mckpt::impl
