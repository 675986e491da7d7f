// Data files of a DCP folder that nothing but their names distinguishes: records of the same sizes, types and
// shapes at the same places. One of two such files can be copied over the other, or they can change places,
// and every box, size and checksum fits as before:
//
//   __2_0.distcp   [q_proj rows 0-15][k_proj rows 0-7] ...      records do not say their tensor, rank or rows
//   __3_0.distcp   [q_proj rows 16-31][k_proj rows 8-15] ...
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/dcp/metadata/metadata.h"

namespace mckpt::impl {

class Store;
class StoreFiles;

// A record of a data file. `shared`: several ranks saved it, each in its own file, under one name.
struct FileRecord {
  i64 offset = 0, bytes = 0;
  i64 tensor = -1;  // -1: an object, or a copy that is not read
  i32 chunk = -1;
  bool shared = false;
};
struct AlikeFile {
  i32 file = -1;
  std::vector<FileRecord> records;  // the records of tensors first, by their places
};
using AlikeFiles = std::vector<std::vector<AlikeFile>>;

// The groups of two and more files that are alike. From memory alone. `copies`: of the store's metadata.
AlikeFiles alike_files(const Store& store, std::span<const DcpMetadata::Copy> copies);

// Whether two records have the same bytes.
using SameBytes = std::function<bool(const DcpRecord& a, const DcpRecord& b)>;

// Finds copies among alike files by the sums in their records. A copy has other parts of the same tensors
// than its original should have, and at least one varies: that is a problem. Where the two files have other
// tensors, equal ones are possible (experts or layers that began as copies), and the finding is a warning.
std::vector<Finding> find_copied_files(const Store& store, const StoreFiles& files, const AlikeFiles& alike,
                                       const SameBytes& same_bytes);

}  // namespace mckpt::impl
