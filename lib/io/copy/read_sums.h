// ReadSums: whether the bytes that a copy reads are those that its source's CRC-32 sums were taken of. Sums
// are taken block by block while the bytes are in the cache and joined at the end, in whatever order and by
// whatever tasks a record was read; what nobody read of a record is read for its sum.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/store/checksum.h"

namespace mckpt::impl {

class Store;

class ReadSums {
 public:
  // A record of which something is taken, with its sum. Thread-safe; a record may be passed several times.
  void expect(const Checksum& record);
  // Bytes that were read. Thread-safe.
  void add(i32 file, i64 offset, std::span<const u8> bytes);

  // Throws kBadChecksum with the first record whose bytes are not those of its sum. `going_on` is called now
  // and then, and may throw. Called last.
  void check(const Store& store, const std::function<void()>& going_on);

 private:
  struct Block {
    i32 file;
    i64 begin, end;
    u32 crc32;
  };
  std::mutex mutex_;
  std::vector<Checksum> records_;
  std::vector<Block> blocks_;
};

}  // namespace mckpt::impl
