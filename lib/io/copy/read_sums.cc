// Joins the sums of blocks to the sums of records. Records and blocks are sorted by their places, so one walk
// over both suffices. A block that reaches out of the record, or overlaps a block before it (two tasks read
// the same bytes), is not used; its bytes are read again instead.
#include "io/copy/read_sums.h"

#include <algorithm>
#include <tuple>

#include "core/base/error.h"
#include "io/file/crc32.h"
#include "io/listing/manifest.h"
#include "io/listing/manifest_sums.h"
#include "io/listing/stretches.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/verify/archive_sums.h"

namespace mckpt::impl {
void ReadSums::expect(const Checksum& record) {
  std::lock_guard lock(mutex_);
  records_.push_back(record);
}

u32 ReadSums::add(i32 file, i64 offset, std::span<const u8> bytes) {
  u32 sum = crc32(0, bytes);
  std::lock_guard lock(mutex_);
  blocks_.push_back({file, offset, offset + std::ssize(bytes), sum});
  return sum;
}

// Both lists by place, and each record once: of tensors that share a record, the first is kept.
void ReadSums::sort() {
  std::ranges::sort(blocks_, {}, [](const Block& b) { return std::tuple(b.file, b.begin, b.end); });
  auto place = [](const Checksum& c) { return std::tuple(c.file, c.offset); };
  std::ranges::sort(records_, {}, [](const Checksum& c) { return std::tuple(c.file, c.offset, c.tensor); });
  auto same_place = [&](const Checksum& x, const Checksum& y) { return place(x) == place(y); };
  records_.erase(std::unique(records_.begin(), records_.end(), same_place), records_.end());
}

// The rows of an archive from which something was read are records as well.
void ReadSums::add_archive_sums(const Store& store) {
  sort();
  std::size_t b = 0;
  for (Checksum& row : archive_sums(store)) {
    while (b < blocks_.size() &&
           std::tuple(blocks_[b].file, blocks_[b].end) <= std::tuple(row.file, row.offset))
      b++;
    if (b < blocks_.size() && blocks_[b].file == row.file && blocks_[b].begin < row.offset + row.bytes)
      records_.push_back(std::move(row));
  }
  sort();
}

void ReadSums::check(const Store& store, const std::function<void()>& going_on) {
  add_archive_sums(store);
  ManifestSums listed(store);
  auto tell = [&](i64) { going_on(); };

  StoreBytes files(store);
  std::vector<const Checksum*> bad;
  std::size_t b = 0;
  for (const Checksum& record : records_) {
    i64 at = record.offset, end = record.offset + record.bytes;
    while (b < blocks_.size() && std::tuple(blocks_[b].file, blocks_[b].begin) < std::tuple(record.file, at))
      b++;
    u32 sum = 0;
    for (; b < blocks_.size() && blocks_[b].file == record.file && blocks_[b].begin < end; b++) {
      const Block& block = blocks_[b];
      if (block.begin < at || block.end > end)
        continue;  // overlaps another block, or ends in the next record
      sum = sum_bytes(sum, files[record.file], at, block.begin, tell);
      sum = crc32_join(sum, block.crc32, block.end - block.begin);
      at = block.end;
    }
    sum = sum_bytes(sum, files[record.file], at, end, tell);
    // A record that fits its own sum may still be from another file that was put in the place of this one;
    // the manifest has the sum that mckpt wrote.
    const SummedStretch* wanted = listed.find(record.file, record.offset);
    bool other = wanted && wanted->bytes == record.bytes && wanted->crc32 != sum;
    if (sum != record.crc32 || other) bad.push_back(&record);
  }
  if (!bad.empty()) refuse(store, bad);
}

void ReadSums::refuse(const Store& store, const std::vector<const Checksum*>& bad) {
  Error e(Code::kBadChecksum,
          "the bytes that were read are not those that were written: the checksum does not match");
  e.file(file_path(store, bad[0]->file)).offset(bad[0]->offset);
  if (bad[0]->tensor >= 0)
    e.tensor(store.name(bad[0]->tensor));
  else if (!bad[0]->name.empty())
    e.tensor(bad[0]->name);
  if (bad.size() > 1) e.note(cat(bad.size(), " records are damaged"));
  throw e.help("copy the file again from its source; `mckpt verify` lists everything that is damaged");
}

}  // namespace mckpt::impl
