// CompareSink: takes what a copy job would write and compares it with the files that exist. The sink finds
// every tensor that differs, and the first differing item of each; it stops at no number of differences.
//
//   job writes      file 0, bytes 4096-8191    [.. 3f 80 ..]
//   the file has                               [.. 3f 00 ..]   -->   tensor "w", item 256, byte 5120
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "convert/compare/differences/chunk_extents.h"
#include "convert/compare/differences/spare.h"
#include "convert/compare/differences/wide_chunks.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"
#include "io/copy/worker.h"
#include "io/output/copy_sink.h"

namespace mckpt::impl {

class Store;

// One comparison. write() is thread-safe. Memory: one number for each tensor that differs, and an index over
// all chunks once something differs.
class CompareSink final : public CopySink {
 public:
  // kCounted: what differs is counted afterwards, and its first place found: of a tensor that is known to
  // differ, the rest is not wanted. kOne: after one difference nothing is wanted.
  enum class Places : u8 { kFirst, kCounted, kOne };
  // The job writes these chunks, into the files of the store. Both outlive this. `rounded`: whether the job
  // rounds the items of a key, of which every NaN is equal to every other one; empty: it rounds none.
  CompareSink(const Store& there, const ChunkList& chunks, Places places,
              std::function<bool(i32 key)> rounded = {})
      : chunks_(chunks), bytes_(there, chunks), places_(places), rounded_(std::move(rounded)) {}

  // Throws kInternal if bytes differ that belong to none of the chunks, and what reading the file throws.
  void write(i32 file, i64 offset, std::span<const u8> bytes) override;
  bool wants(i32 file, i64 offset, i64 bytes) override;

  // The first place, in the order of the files, at which a tensor differs; kCounted: one that was found.
  struct Difference {
    i32 key = -1;
    i32 file = 0;
    i64 offset = 0;  // of the first byte in the file that differs
    i64 item = 0;  // of that byte, counted from the beginning of the chunk; -1: items are smaller than a byte
  };
  // One for each key with a difference, in the order of the files. Called when everything is written.
  std::vector<Difference> differences() const;

 private:
  // Bytes of a file, from an offset on.
  struct Stretch {
    i64 offset;
    std::span<const u8> bytes;

    i64 end() const { return offset + std::ssize(bytes); }
    std::span<const u8> part(i64 from, i64 to) const;
  };

  bool is_rounded(const ChunkExtents::Extent& e) const { return rounded_ && rounded_(chunks_.key(e.chunk)); }
  void add(i32 file, const Stretch& written, const Stretch& found);
  i64 first_difference(const ChunkExtents::Extent& e, const Stretch& written, const Stretch& found) const;

  const ChunkList& chunks_;
  TestedBytes bytes_;
  Places places_;
  std::function<bool(i32 key)> rounded_;
  Spare<Arena> buffers_;
  std::mutex mutex_;
  std::unique_ptr<const ChunkExtents> extents_;  // made for the first difference: most comparisons have none
  std::map<i32, Difference> of_key_;
};

// "the tensor differs from item 7 of this file's part of it on". `offset`: in the file; -1: in no file.
std::string text_of(const CompareSink::Difference& difference, i64 offset);

}  // namespace mckpt::impl
