// Experts that came out byte-equal: chunks of a written checkpoint whose keys differ in the expert's number
// alone and whose bytes are the same. A save in which ranks overwrote each other's experts looks whole; that
// expert 0 equals expert 32 is what is left to see of it.
#pragma once

#include <string>
#include <vector>

#include "convert/key_table.h"
#include "io/dcp_layout.h"

namespace mckpt {

struct ChunkTwins {
  std::string first, second;  // keys
};

// `crc32s`: by chunk of the layout, 0 where not known; `folder` has the files. Equal checksums are confirmed
// by reading; chunks that are one value throughout, such as zeros, are no twins. At most `most` pairs.
std::vector<ChunkTwins> chunk_twins(const KeyTable& keys, const DcpLayout& layout,
                                    std::span<const i32> table_key, std::span<const u32> crc32s,
                                    const std::string& folder, std::size_t most);

}  // namespace mckpt
