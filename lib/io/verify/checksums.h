// The CRC-32 sums that a store's format keeps, against the bytes that lie there.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/base/int.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class ByteSource;
class Store;
class StoreFiles;
struct Checksum;

struct ChecksumResult {
  i64 records = 0;  // looked at
  std::vector<Finding> findings;
};

// Reads everything that has a sum. A record that cannot be read is a finding as well. `progress` is told
// bytes as they are read, from any thread.
ChecksumResult check_checksums(const Store& store, const StoreFiles& files, int threads,
                               const std::function<void(i64 bytes)>& progress);

// What is wrong with a record that is read on its own; nothing where its bytes are those of its sum.
std::optional<Finding> checksum_fault(const Store& store, const StoreFiles& files, const Checksum& record);

// Goes on with a CRC-32 over bytes of a file. `going_on` is called now and then, and may throw.
u32 sum_bytes(u32 before, const ByteSource& file, i64 begin, i64 end,
              const std::function<void(i64 bytes)>& going_on = {});

}  // namespace mckpt::impl
