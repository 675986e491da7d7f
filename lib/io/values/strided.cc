// Reads strided items in few reads: sorts the loops by their stride in the file, takes as many inner loops
// into one read as 1 MiB and a limit of waste allow, cuts the first loop that does not fit, and walks over
// the others one step at a time.
//
//   column 0 of a [1000, 1000] float32     1,000 items, 4,000 bytes apart: one wanted item in 1,000, too much
//                                          waste, so 1,000 reads of 4 bytes
//   columns 0..9 of it                     10 wanted items in 1,000: one read of 263 rows (1 MiB) at a time
#include "io/values/strided.h"

#include <algorithm>
#include <cstring>

namespace mckpt::impl {
namespace {

constexpr i64 kMostReadBytes = 1 << 20;
// If a read would use less than one byte in so many, the loop is walked one step at a time instead.
constexpr i64 kMostWaste = 256;

// Copies the items of one loop. The size of an item is a constant, so that each copy is one instruction.
template <i64 kItemBytes>
void scatter_line(const u8* from, u8* to, const StridedLoop& loop) {
  for (i64 i = 0; i < loop.count; i++)
    std::memcpy(to + i * loop.memory_stride * kItemBytes, from + i * loop.file_stride * kItemBytes,
                kItemBytes);
}

// Carries out loops that are sorted and cut.
class StridedReader {
 public:
  StridedReader(const ByteSource& file, i64 item_bytes, std::vector<u8>& scratch)
      : file_(file), item_bytes_(item_bytes), scratch_(scratch) {}

  // Loops [0, inner) are read at once, those behind them one step at a time.
  void run(std::span<const StridedLoop> loops, std::size_t inner, i64 offset, u8* to) {
    if (loops.size() == inner) return read_block(loops, offset, to);
    const StridedLoop& outer = loops.back();
    for (i64 i = 0; i < outer.count; i++)
      run(loops.first(loops.size() - 1), inner, offset + i * outer.file_stride * item_bytes_,
          to + i * outer.memory_stride * item_bytes_);
  }

 private:
  // One read from the first to the last item of the loops; then each item goes to its place.
  void read_block(std::span<const StridedLoop> loops, i64 offset, u8* to) {
    i64 extent = 1;
    for (const StridedLoop& l : loops) extent += (l.count - 1) * l.file_stride;
    scratch_.resize(static_cast<std::size_t>(extent * item_bytes_));
    file_.read(offset, scratch_);
    scatter(loops, scratch_.data(), to);
  }

  void scatter(std::span<const StridedLoop> loops, const u8* from, u8* to) {
    if (loops.empty()) {
      std::memcpy(to, from, static_cast<std::size_t>(item_bytes_));
    } else if (loops.size() == 1) {
      scatter_one(loops[0], from, to);
    } else {
      const StridedLoop& outer = loops.back();
      for (i64 i = 0; i < outer.count; i++)
        scatter(loops.first(loops.size() - 1), from + i * outer.file_stride * item_bytes_,
                to + i * outer.memory_stride * item_bytes_);
    }
  }

  void scatter_one(const StridedLoop& loop, const u8* from, u8* to) {
    switch (item_bytes_) {
      case 1:
        return scatter_line<1>(from, to, loop);
      case 2:
        return scatter_line<2>(from, to, loop);
      case 4:
        return scatter_line<4>(from, to, loop);
      case 8:
        return scatter_line<8>(from, to, loop);
      default:
        return scatter_line<16>(from, to, loop);
    }
  }

  const ByteSource& file_;
  i64 item_bytes_;
  std::vector<u8>& scratch_;
};

}  // namespace

bool is_row_major(std::span<const i64> sizes, std::span<const i64> strides) {
  // For an empty tensor any stride is right, and the product of its other sizes may overflow.
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  i64 expected = 1;
  for (std::size_t d = sizes.size(); d-- > 0; expected *= sizes[d])
    if (sizes[d] != 1 && strides[d] != expected) return false;
  return true;
}

void read_strided(const ByteSource& file, i64 offset, std::vector<StridedLoop> loops, i64 item_bytes,
                  std::span<u8> to, std::vector<u8>& scratch) {
  std::erase_if(loops, [](const StridedLoop& l) { return l.count == 1; });
  std::stable_sort(loops.begin(), loops.end(),
                   [](const StridedLoop& a, const StridedLoop& b) { return a.file_stride < b.file_stride; });
  // As many inner loops as one read can hold without being mostly waste; the loop that does not fit is cut in
  // two.
  std::size_t inner = 0;
  i64 extent = 1, items = 1, most = kMostReadBytes / item_bytes;
  for (; inner < loops.size(); inner++) {
    StridedLoop& l = loops[inner];
    i64 room = l.file_stride == 0 ? l.count : (most - extent) / l.file_stride + 1;
    i64 fits = std::min(l.count, room);
    if (fits < 2 || extent + (fits - 1) * l.file_stride > kMostWaste * items * fits) break;
    if (fits < l.count) {
      StridedLoop rest = {l.count / fits, l.file_stride * fits, l.memory_stride * fits};
      i64 left = l.count % fits;
      if (left > 0) {  // the odd end is read by itself
        std::vector<StridedLoop> tail = loops;
        tail[inner].count = left;
        i64 done = l.count - left;
        std::span<u8> tail_to = to.subspan(static_cast<std::size_t>(done * l.memory_stride * item_bytes));
        read_strided(file, offset + done * l.file_stride * item_bytes, std::move(tail), item_bytes, tail_to,
                     scratch);
      }
      loops[inner].count = fits;
      loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(inner) + 1, rest);
      inner++;
      break;
    }
    extent += (l.count - 1) * l.file_stride;
    items *= l.count;
  }
  StridedReader(file, item_bytes, scratch).run(loops, inner, offset, to.data());
}

}  // namespace mckpt::impl
