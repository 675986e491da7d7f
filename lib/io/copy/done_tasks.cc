// The frame of a destination depends on its items alone, so it needs no sum in the log.
#include "io/copy/done_tasks.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/items/plan.h"
#include "io/copy/job.h"
#include "io/copy/task_log.h"
#include "io/copy/written_sums.h"
#include "io/file/file.h"
#include "io/listing/stretches.h"
#include "io/output/output_files.h"

namespace mckpt::impl {
namespace {

bool has_frame(const CopyJob& job, const Region& region, u32 crc, const InputFile& file) {
  const Frame frame = job.frame(region);
  const i64 end = region.offset + region.items * region.item_bytes;
  std::vector<u8> head(static_cast<std::size_t>(frame.head_bytes)),
      tail(static_cast<std::size_t>(frame.tail_bytes));
  if (!head.empty()) job.write_head(region, head);
  if (!tail.empty()) job.write_tail(region, crc, tail);
  return file.read(region.offset - frame.head_bytes, frame.head_bytes) == head &&
         file.read(end, frame.tail_bytes) == tail;
}

}  // namespace

bool is_as_written(const CopyJob& job, const CopyTask& task, const DoneTask& done, const std::string& folder,
                   const std::vector<OutputFile>& files, WrittenSums& sums) {
  std::vector<u32> found;
  std::vector<WrittenSums::Data> data;
  for (i32 d = 0; d < task.plan.destination_count(); d++) {
    const Region& r = task.plan.destination(d);
    const i64 bytes = r.items * r.item_bytes;
    found.push_back(0);
    if (bytes == 0) continue;
    InputFile file(cat(folder, "/", files[r.file].name));
    found.back() = sum_bytes(0, file, r.offset, r.offset + bytes);
    if (!has_frame(job, r, found.back(), file)) return false;
    if (r.tensor >= 0) data.push_back({r.file, r.offset, bytes, found.back()});
  }
  if (sum_of_sums(found) != done.written) return false;
  for (const WrittenSums::Data& d : data) sums.add(d);
  return true;
}

u32 stated_sum(const CopyTask& task) {
  std::vector<u32> sums;
  for (const Checksum& c : task.sums) sums.push_back(c.crc32);
  return sum_of_sums(sums);
}

}  // namespace mckpt::impl
