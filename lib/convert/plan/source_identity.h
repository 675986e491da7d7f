// The identity of a source: what an interrupted conversion remembers of the files that it reads, so that
// --resume continues only if they are the files of the first run.
//
//   __0_0.distcp 1048576 1718000000000000000 1718000000000000007      path, bytes, and in ns the times of the last
//                                                                     change of the contents, and of the file
#pragma once

#include <string>

namespace mckpt::impl {

class Store;

// A text that differs after any file of the store has changed, or other bytes of the files are a tensor: one line
// for each file with its size and times, and a digest of the table of tensors. Opens every file; reads no data.
std::string source_identity(const Store& store);

}  // namespace mckpt::impl
