// ReadSums: checks that the bytes a copy reads are those that the source's CRC-32 sums were taken of. The
// copy sums each block while it is in the processor's cache; sums of blocks are joined to sums of records at
// the end, in whatever order and by whatever tasks a record was read. Bytes of a record that no task read are
// read then, so a record is always checked as a whole.
//
//   record      |----------------- bytes 0..999, CRC-32 stored in the zip ----------------|
//   blocks      |-- 0..399, task 3 --|                    |-- 700..999, task 9 --|
//   at the end                       |-- 400..699 read --|     joined sum == stored sum?
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/store/checksum.h"

namespace mckpt::impl {

class Store;

// One object for each rank and copy. Memory: an entry for each record and each block of at most 1 MiB.
class ReadSums {
 public:
  // A record from which bytes are taken, with its sum. Thread-safe; a record may be passed several times.
  void expect(const Checksum& record);
  // Bytes that were read from a source file; returns their sum. Thread-safe.
  u32 add(i32 file, i64 offset, std::span<const u8> bytes);

  // Compares every expected record; also with the manifest of the source's folder, if it has one. Throws
  // kBadChecksum with the first record whose sum differs, and with the number of such records. `going_on` is
  // called now and then, and may throw. To be called once, after the copy.
  void check(const Store& store, const std::function<void()>& going_on);

 private:
  // Bytes that were read at once, and their sum.
  struct Block {
    i32 file;
    i64 begin, end;
    u32 crc32;
  };

  void sort();
  void add_archive_sums(const Store& store);
  [[noreturn]] static void refuse(const Store& store, const std::vector<const Checksum*>& bad);

  std::mutex mutex_;
  std::vector<Checksum> records_;
  std::vector<Block> blocks_;
};

}  // namespace mckpt::impl
