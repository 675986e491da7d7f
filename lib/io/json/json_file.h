// The text of a JSON file of a checkpoint: a config, an index, a table of tensors. Its size is checked before
// anything of it is read, so that a made-up file of many GB is refused and not loaded.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class InputFile;

inline constexpr i64 kMostJsonBytes = 256 << 20;  // the index of a model of 100,000 tensors has 10 MB

// The whole text. Throws kBadJson for a file of more than `most` bytes, and what reading throws; with_file()
// of the caller adds the path.
std::string json_text(const InputFile& file, i64 most = kMostJsonBytes);

}  // namespace mckpt::impl
