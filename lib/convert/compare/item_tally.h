// ItemTally: takes what a copy job would write of tensors that are known to differ, and counts their items
// that do: which is the first, what it is on both sides, how far apart numbers are.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "convert/compare/chunk_extents.h"
#include "core/base/int.h"
#include "io/file/copy_sink.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

class ChunkList;
class Store;

class ItemTally final : public CopySink {
 public:
  // The job's files are those of the store, and it writes these chunks. All outlive this. Chunks that cannot
  // be placed are left out.
  ItemTally(const Store& there, const ChunkList& chunks);

  void write(i32 file, i64 offset, std::span<const u8> bytes) override;

  struct Count {
    i64 items = 0;
    std::vector<i64> index;  // in the tensor, of the first one in the order of its rows
    i32 file = -1;
    i64 offset = 0;                   // of that item
    std::string expected, found;      // the numbers that it is
    std::optional<double> largest{};  // difference of two finite floats
  };
  // By key; only of keys of which items differ.
  const std::map<i32, Count>& counts() const { return counts_; }

 private:
  void compare(const ChunkExtents::Extent& e, i64 first, std::span<const u8> expected,
               std::span<const u8> found);

  const ChunkList& chunks_;
  StoreBytes bytes_;
  ChunkExtents extents_;
  std::mutex mutex_;
  std::map<i32, Count> counts_;
};

// "differs at [3, 2]: expected 1.5, found 2; 17 items differ, by 0.5 at most"
std::string to_string(const ItemTally::Count& count);

}  // namespace mckpt::impl
