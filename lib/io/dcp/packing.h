// Records that an extension of torch's DCP transformed on their way into the file
// (FileSystemWriter(_extensions=...)): of those that torch has, ZStandard. Anything else is known by its name
// alone.
//
//   _StorageInfo {relative_path, offset, length, transform_descriptors ["stream.zstd/1"]}
//   bytes [offset, offset + length) of the file --undo--> the archive of torch.save
//
// A record is unpacked into memory as a whole, since the description of an archive is at its end. The records
// that were used last are kept, so that a chunk is not unpacked for each of its blocks.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/file/file.h"

namespace mckpt::impl {

struct DcpRecord;
struct Object;
class StoreFiles;

// Undoes what the extensions did, the last of them first. `packing`: their names, parted by commas. Throws
// kItemMismatch for an extension that mckpt does not know, for a record that is damaged, and beyond
// `most_bytes`; kBadChecksum where the archive in it does not match its sums.
std::vector<u8> unpack_record(const ByteSource& record, std::string_view packing, i64 most_bytes);

// The record of an object, as torch.save wrote it. Throws what unpack_record() throws.
std::shared_ptr<const ByteSource> open_object_record(const StoreFiles& files, const Object& object);

// The unpacked records of a store. Thread-safe.
class UnpackedRecords {
 public:
  // The record as torch.save wrote it, from memory if it is still there.
  std::shared_ptr<const ByteSource> open(const StoreFiles& files, const DcpRecord& record,
                                         std::string_view packing, i64 most_bytes) const;

 private:
  struct Entry {
    i32 file;
    i64 offset;
    std::shared_ptr<const ByteSource> bytes;
  };
  std::shared_ptr<const ByteSource> find(const DcpRecord& record) const;

  mutable std::mutex mutex_;
  mutable std::list<Entry> kept_;  // the one used last is in front
  mutable i64 kept_bytes_ = 0;
};

}  // namespace mckpt::impl
