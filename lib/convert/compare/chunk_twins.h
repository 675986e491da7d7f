// Experts that came out byte-equal: chunks of a written checkpoint whose keys differ in the expert's number
// alone and whose bytes are the same. A save in which ranks overwrote each other's experts looks whole; that
// expert 0 equals expert 32 is what is left to see of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class DcpLayout;
class KeyTable;

struct ChunkTwins {
  std::string first, second;  // keys
};

// `folder` has the files of the layout, whose records' checksums are compared; equal ones are confirmed by
// reading. Chunks that are one value throughout, such as zeros, are not twins. At most `most` pairs.
std::vector<ChunkTwins> chunk_twins(const KeyTable& keys, const DcpLayout& layout,
                                    std::span<const i32> table_key, const std::string& folder,
                                    std::size_t most);

}  // namespace mckpt::impl
