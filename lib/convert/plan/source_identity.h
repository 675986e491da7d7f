// The identity of a source: what an interrupted conversion remembers of the files that it reads, so that
// --resume continues only if they are the files of the first run.
//
//   files    __0_0.distcp 1048576 1718000000000000000      path, bytes, and in ns the time of the last write
//   times    __0_0.distcp 1718000000000000007              and of the last change of the inode
#pragma once

#include <string>

namespace mckpt::impl {

class Store;

// Two texts, one of which differs after any file of the store has changed, or other bytes of the files are a
// tensor.
struct SourceIdentity {
  std::string files{};  // a line for each file, and a digest of the table of tensors
  std::string times{};  // a line for each file: they also differ after what changes no contents

  std::string text() const { return files + times; }
};
// Opens every file; reads no data.
SourceIdentity source_identity(const Store& store);

}  // namespace mckpt::impl
