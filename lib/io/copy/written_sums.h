// WrittenSums: the CRC-32 sums of what a copy writes, taken while the bytes are in the cache: of the data of
// each tensor or chunk, and of what frames them. What was written another way (headers, objects, the tasks of
// an interrupted run) is read from the files for its sums.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct CopyTask;
struct Manifest;
struct ManifestFile;
struct OutputFile;

class WrittenSums {
 public:
  // The data of a whole destination region.
  struct Data {
    i32 file;
    i64 offset, bytes;
    u32 crc32;
  };
  // Bytes that were written at once, and the sum of those of them that are no region's data.
  struct Stretch {
    i32 file;
    i64 begin, end;
    i64 rest_bytes;
    u32 rest_crc32;
  };

  void add(const Data& data);        // thread-safe
  void add(const Stretch& stretch);  // thread-safe
  // The data of a task that an earlier run carried out, from the files in `folder`.
  void read(const CopyTask& task, const std::string& folder, const std::vector<OutputFile>& files);

  // For those that gather the sums of several ranks.
  std::vector<Data>& data() { return data_; }
  std::vector<Stretch>& stretches() { return stretches_; }

  // The entries of the files that hold data. pre: the files in `folder` have all their bytes. Called last.
  std::vector<ManifestFile> finish(const std::string& folder, const std::vector<OutputFile>& files);

 private:
  std::mutex mutex_;
  std::vector<Data> data_;
  std::vector<Stretch> stretches_;
};

// The manifest of all files in `folder`: `summed` and, by their SHA-256, the other files but the marks
// of staging.
Manifest make_manifest(const std::string& folder, std::vector<ManifestFile> summed, std::string version);

}  // namespace mckpt::impl
