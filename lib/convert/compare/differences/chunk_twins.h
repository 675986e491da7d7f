// Experts with the same bytes: chunks of a written checkpoint whose keys differ only in the expert's number
// and whose bytes are equal. A training run in which ranks overwrote each other's experts saves a checkpoint
// that looks complete; that expert 0 equals expert 32 is the only trace that remains.
//
//   ...experts.linear_fc1.weight0_w  crc 5a2e...  ==  ...experts.linear_fc1.weight32_w  crc 5a2e...   -->  a pair
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class DcpLayout;
class KeyTable;

// A pair of equal experts, by the keys of their chunks.
struct ChunkTwins {
  std::string first, second;  // keys
};

// pre: `folder` has the files of the layout, complete. Compares the checksums in the records, 4 bytes for
// each chunk of an expert; equal ones are confirmed by reading the chunks. Chunks that are one value
// throughout, such as zeros, are not twins. Returns at most `most` pairs.
std::vector<ChunkTwins> chunk_twins(const KeyTable& keys, const DcpLayout& layout,
                                    std::span<const i32> table_key, const std::string& folder,
                                    std::size_t most);

}  // namespace mckpt::impl
