// WrittenSums: the CRC-32 sums of what a copy writes, for mckpt_manifest.json. They are taken while the bytes
// are in the processor's cache. Each byte of a file is in exactly one sum:
//
//   file         | header |  data of A  | frame |  data of B  | frame | objects |
//   Data                  [-----A-------]       [------B------]                      a sum each
//   Stretch               [-----------------------------------------]                of one write: its frames
//   rest_crc32   [header]               [frame]               [frame] [objects]      one sum, end to end
//
// Bytes that the copy did not write (headers, objects, the tasks of an interrupted run) are read from the
// files for its sums.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Manifest;
struct ManifestFile;
struct OutputFile;

// One object for each rank; the sums of all ranks are gathered into one object before finish(). Memory: an
// entry for each region and each write.
class WrittenSums {
 public:
  // The data of a whole destination region.
  struct Data {
    i32 file;
    i64 offset, bytes;
    u32 crc32;
  };
  // Bytes that were written at once, and the number and sum of those that are not data of a region.
  struct Stretch {
    i32 file;
    i64 begin, end;
    i64 rest_bytes;
    u32 rest_crc32;
  };

  void add(const Data& data);        // thread-safe
  void add(const Stretch& stretch);  // thread-safe

  // The CRC-32 of each region, by file and offset. To be called when the sums of all ranks are gathered.
  class ByPlace;
  ByPlace by_place() const;

  // For gathering the sums of several ranks.
  std::vector<Data>& data() { return data_; }
  std::vector<Stretch>& stretches() { return stretches_; }

  // The manifest's entries for the files that contain data. Reads what has no sum yet. pre: the files in
  // `folder` have all their bytes; every region was added once. Throws kReadFailed. To be called once.
  std::vector<ManifestFile> finish(const std::string& folder, const std::vector<OutputFile>& files);

 private:
  std::mutex mutex_;
  std::vector<Data> data_;
  std::vector<Stretch> stretches_;
};

// Finds the sum of a region. The sums outlive it and do not change.
class WrittenSums::ByPlace {
 public:
  explicit ByPlace(std::span<const Data> data);
  u32 crc32(i32 file, i64 offset) const;  // throws kInternal if nothing was written there

 private:
  std::vector<const Data*> sorted_;
};

// The manifest of all files in `folder`: the entries of `summed`, and entries with the SHA-256 of all other
// files except marks of staging and the manifest itself.
Manifest make_manifest(const std::string& folder, std::vector<ManifestFile> summed, std::string version);

}  // namespace mckpt::impl
