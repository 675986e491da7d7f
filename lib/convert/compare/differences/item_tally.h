// ItemTally: takes what a copy job would write of tensors that are known to differ, and counts their
// differing items: which is the first, what it is on both sides, and how far apart the tensors are.
//
//   "differs at [3, 2]: expected 1.5, found 2; 17 items differ, by 0.5 at most"
//
// Sums of floats depend on the order of their terms. Threads write in any order, so the sums of the pieces of
// a tensor are kept, and added in the order of their places when all its items were seen.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/compare/differences/chunk_extents.h"
#include "convert/compare/differences/counting.h"
#include "convert/compare/differences/spare.h"
#include "convert/compare/differences/wide_chunks.h"
#include "core/base/int.h"
#include "io/output/copy_sink.h"
#include "io/values/distance.h"

namespace mckpt::impl {

struct Difference;

class ChunkList;
class Store;

// One count. write() is thread-safe; counts() is read when everything is written. Memory: an entry for each
// tensor, and one for each 256 KiB of the tensors that threads are in. Items that are written twice count
// once.
class ItemTally final : public CopySink {
 public:
  // How far items of the tensor with this key may be apart.
  using Within = std::function<Tolerance(i32 key)>;
  // Whether the job rounds the items of the tensor with this key: then every NaN is equal to every other one.
  using Rounded = std::function<bool(i32 key)>;

  // pre: the job writes these chunks into the files of the store. All arguments outlive this object. Chunks
  // whose headers cannot be read are left out, and so are types of less than a byte. `within`: empty: items
  // that are not equal are beyond it. `rounded`: empty: it rounds none.
  ItemTally(const Store& there, const ChunkList& chunks, Within within = {}, Rounded rounded = {});

  void write(i32 file, i64 offset, std::span<const u8> bytes) override;

  // The differences of one tensor.
  struct Count {
    i64 items = 0;
    std::vector<i64> index;  // of the first differing item in the tensor, in row-major order
    i32 file = -1;
    i64 offset = 0;                           // of that item in the file
    std::string expected, found;              // the values of that item
    std::optional<ValueDistance> distance{};  // of floats, over all items of the tensor: `found` is its a

    std::optional<double> largest() const { return distance ? distance->largest : std::nullopt; }
    i64 beyond() const { return distance ? distance->beyond : items; }
  };
  // The counts by key, of tensors of which something was written.
  const std::map<i32, Count>& counts();

 private:
  // The pieces of a tensor, by chunk and first item, as long as not all of them were seen.
  struct Pieces {
    i64 items_left = 0;
    std::map<std::pair<i64, i64>, StretchCount> seen{};
  };

  void add(const ChunkExtents::Extent& e, i64 first, i64 items, const StretchCount& counted, Count here);
  void add_up(i32 key, Pieces& pieces);
  void compare(const ChunkExtents::Extent& e, i64 first, std::span<const u8> expected,
               std::span<const u8> found);
  void note_first(const ChunkExtents::Extent& e, i64 first, std::span<const u8> expected,
                  std::span<const u8> found, Count& here) const;
  const DistanceMeter& meter(DType dtype);

  const ChunkList& chunks_;
  TestedBytes bytes_;
  ChunkExtents extents_;
  Spare<std::vector<u8>> buffers_;
  std::mutex mutex_;
  std::map<i32, Count> counts_;
  std::map<i32, Pieces> pieces_;  // by key
  Within within_;
  Rounded rounded_;
  std::map<DType, DistanceMeter> meters_;
};

// The sentence of the example above.
std::string difference_text(const Difference& counted);

}  // namespace mckpt::impl
