// What an interrupted conversion remembers of its source.
#pragma once

#include <string>

namespace mckpt::impl {

class Store;

// A text that is another one after any file of the store has changed: its files with sizes and times.
std::string source_identity(const Store& store);

}  // namespace mckpt::impl
