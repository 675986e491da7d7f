// ArchiveJob: a copy job that puts the files of a checkpoint into an archive. Chunks are copied as tensors,
// bit for bit; what is between them, and files without tensors, as bytes that belong to no tensor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convert/jobs/readable_chunks.h"
#include "convert/plan/targets/archived_files.h"
#include "core/base/int.h"
#include "io/copy/job.h"

namespace mckpt::impl {

class ArchiveLayout;
class Store;
struct ArchiveContents;

// The chunks of all tensors as an archive has them. pre: `chunks` has all chunks of the store's tensors.
void add_contents(ArchiveContents& to, const Store& store, const ArchivedFiles& files,
                  const ReadableChunks& chunks);

class ArchiveJob final : public CopyJob {
 public:
  // All outlive this. pre: the layout was made of add_contents() of the same.
  ArchiveJob(const Store& store, const ArchivedFiles& files, const ReadableChunks& chunks,
             const ArchiveLayout& layout);
  ~ArchiveJob() override;

  i64 task_count() const override { return std::ssize(tasks_); }
  CopyTask task(i64 index) const override;
  i64 task_bytes(i64 index) const override { return tasks_[index].bytes; }
  i32 source_tensor(const Region& region) const override;
  i32 target_tensor(const Region& region) const override { return source_tensor(region); }
  std::string tensor_of(const Region& region) const override;
  const ByteSource& source(i32 file) const override;
  void prepare(int threads, i64 memory_bytes) const override;

 private:
  class SideSource;
  // A chunk, or rows [first, end) of bytes between chunks of one file.
  struct Task {
    i64 chunk = -1;
    i64 first = 0, end = 0;
    i64 part = 0, offset = 0, bytes = 0;
  };
  void list_tasks();
  CopyTask chunk_task(const Task& task) const;
  CopyTask rows_task(const Task& task) const;
  i32 source_of(i64 file) const;

  const Store& store_;
  const ArchivedFiles& files_;
  const ReadableChunks& chunks_;
  const ArchiveLayout& layout_;
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<const SideSource>> side_;  // by file; null: the store has it
};

}  // namespace mckpt::impl
