// CompareSink: takes what a copy job would write and compares it with what is there. It knows of each tensor
// whether it differs, and from which item on; nothing that differs is left out, however much it is.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "convert/compare/chunk_extents.h"
#include "core/base/int.h"
#include "io/file/copy_sink.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class ChunkList;
class Store;

class CompareSink final : public CopySink {
 public:
  // The job writes these chunks, into the files of the store. Both outlive this.
  CompareSink(const Store& there, const ChunkList& chunks) : chunks_(chunks), bytes_(there) {}

  // Throws kInternal when what differs belongs to none of the chunks.
  void write(i32 file, i64 offset, std::span<const u8> bytes) override;

  // The first place, in the order of the files, at which a tensor differs.
  struct Difference {
    i32 key = -1;
    i32 file = 0;
    i64 offset = 0;  // of the first byte in the file that differs
    i64 item = 0;    // that it belongs to, counted from the beginning of the chunk
  };
  // One for each key of which something differs, in the order of the files. To be called when all is written.
  std::vector<Difference> differences() const;

 private:
  void add(i32 file, i64 offset, std::span<const u8> expected, std::span<const u8> found);

  const ChunkList& chunks_;
  StoreBytes bytes_;
  std::mutex mutex_;
  std::unique_ptr<const ChunkExtents> extents_;  // made for the first difference: most comparisons have none
  std::map<i32, Difference> of_key_;
};

}  // namespace mckpt::impl
