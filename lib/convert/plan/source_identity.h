// The identity of a source: what an interrupted conversion remembers of the files that it reads, so that
// --resume continues only if they are the files of the first run.
//
//   __0_0.distcp 1048576 1718000000000000000        path, bytes, time of the last change of the contents in ns
#pragma once

#include <string>

namespace mckpt::impl {

class Store;

// A text that differs after any file of the store has changed: one line for each file with its size and
// times. Opens every file; reads no data.
std::string source_identity(const Store& store);

}  // namespace mckpt::impl
