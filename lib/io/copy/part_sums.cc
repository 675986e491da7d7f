// Cuts what is written at the borders of tensors and sums each part; at the end sorts the parts by file and
// offset and joins the sums of neighbours (io/file/crc32.h), which needs no bytes. Finding the tensors of a
// write takes a binary search.
#include "io/copy/part_sums.h"

#include <algorithm>
#include <tuple>

#include "io/file/crc32.h"

namespace mckpt::impl {

PartSums::PartSums(std::vector<Place> tensors) : tensors_(std::move(tensors)) {
  std::erase_if(tensors_, [](const Place& t) { return t.bytes == 0; });
  std::ranges::sort(tensors_, {}, [](const Place& t) { return std::tuple(t.file, t.offset); });
}

void PartSums::add(i32 file, i64 offset, std::span<const u8> bytes) {
  i64 end = offset + std::ssize(bytes);
  auto place = [](const Place& t) { return std::tuple(t.file, t.offset + t.bytes); };
  auto t = std::ranges::upper_bound(tensors_, std::tuple(file, offset), {}, place);
  for (; t != tensors_.end() && t->file == file && t->offset < end; t++) {
    i64 from = std::max(offset, t->offset), to = std::min(end, t->offset + t->bytes);
    std::span<const u8> mine =
        bytes.subspan(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from));
    Part part{file, t->offset, from, to - from, crc32(0, mine)};
    std::lock_guard lock(mutex_);
    parts_.push_back(part);
  }
}

void PartSums::join_into(WrittenSums& sums) {
  std::ranges::sort(parts_, {}, [](const Part& p) { return std::tuple(p.file, p.offset); });
  for (auto p = parts_.begin(); p != parts_.end();) {
    WrittenSums::Data whole{p->file, p->tensor, 0, 0};
    for (i64 tensor = p->tensor; p != parts_.end() && p->file == whole.file && p->tensor == tensor; p++) {
      whole.crc32 = crc32_join(whole.crc32, p->crc32, p->bytes);
      whole.bytes += p->bytes;
    }
    sums.add(whole);
  }
}

}  // namespace mckpt::impl
