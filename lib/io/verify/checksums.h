// The CRC-32 sums that a store's format keeps, compared with the bytes on disk. Zip archives (.pt files,
// records of .distcp files) have a sum for each record; a safetensors file that mckpt wrote has the sums of
// mckpt_manifest.json; the stores of other formats report no sums.
//
//   record "archive/data/0", bytes 832..1855: CRC-32 stored 9a7b1c2d, data 9a7b1c2f     problem[MC1203]
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/base/int.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class Store;
class StoreFiles;
struct Checksum;

// The result of check_checksums().
struct ChecksumResult {
  i64 records = 0;                // that were compared, or could not be read
  std::vector<Finding> findings;  // a problem for each record that does not fit its sum
};

// Reads everything that has a sum, with all threads. A record that cannot be read is a finding as well.
// `progress` is called with the number of bytes after each read, from any thread; it may throw kInterrupted,
// which ends the work. Nothing else is thrown as an Error.
ChecksumResult check_checksums(const Store& store, const StoreFiles& files, int threads,
                               const std::function<void(i64 bytes)>& progress);

// The fault of one record; nothing if its bytes fit its sum. Throws kReadFailed and what opening the
// file throws.
std::optional<Finding> checksum_fault(const Store& store, const StoreFiles& files, const Checksum& record);

}  // namespace mckpt::impl
