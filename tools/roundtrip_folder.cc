#include "tools/roundtrip_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "convert/compare_sink.h"
#include "convert/reshard_job.h"

namespace mckpt {

ScratchFolder::ScratchFolder(Comm& world) : mine_(world.rank() == 0) {
  if (mine_) {
    path_ = (std::filesystem::temp_directory_path() / "mckpt_roundtrip_XXXXXX").string();
    if (!::mkdtemp(path_.data()))
      throw Error(Code::kWriteFailed, "cannot make a temporary folder").file(path_).help("--output DIR");
  }
  Gathered all = world.all_gather_v(std::as_bytes(std::span(path_)));
  path_.assign(reinterpret_cast<const char*>(all.of(0).data()), all.of(0).size());
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (mine_) std::filesystem::remove_all(path_, ignored);
}

FolderComparison compare_share(const HfModel& source, const std::string& folder, const Comm& ranks,
                               CopyOptions how) {
  FolderComparison found;
  std::unique_ptr<Store> there = open_store(folder);
  NamedChunks chunks(*there, *source.store);
  std::vector<bool> seen(static_cast<std::size_t>(source.store->tensor_count()));
  for (i64 c = 0; c < chunks.size(); c++) {
    std::size_t t = static_cast<std::size_t>(chunks.key(c));
    seen[t] = std::ranges::equal(chunks.box(c).sizes, source.store->dims(chunks.key(c))) &&
              chunks.dtype(c) == source.store->dtype(chunks.key(c));
  }
  for (const UnreadTensor& u : source.map->unread())
    if (u.of < 0) seen[static_cast<std::size_t>(u.tensor)] = true;
  for (std::size_t t = 0; t < seen.size() && ranks.rank() == 0; t++)
    if (!seen[t])
      found.differences.push_back(
          cat(escaped(source.store->name(static_cast<i64>(t))), " did not come back as it was"));
  ReshardJob job(*source.store, chunks, nullptr);
  CompareSink sink(*there);
  how.first_task = job.task_count() * ranks.rank() / ranks.size();
  how.end_task = job.task_count() * (ranks.rank() + 1) / ranks.size();
  found.bytes = run_copy(job, sink, how).bytes_written;
  for (const CompareSink::Difference& d : sink.differences())
    found.differences.push_back(
        cat("exported file ", escaped(file_label(*there, d.file)), " from byte ", d.offset, " on"));
  return found;
}

}  // namespace mckpt
