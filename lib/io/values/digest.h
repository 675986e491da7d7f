// SHA-256 of tensors as the rest of the world knows them: over the contiguous little-endian bytes, so that
// the same values give the same digest in any format and any sharding.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;
class Store;

// Hexadecimal digests of the tensors, in the order asked for. Reads all their bytes, in bounded memory.
std::vector<std::string> tensor_digests(const Store& store, std::span<const i64> tensors, int threads);

// Of all bytes of a file.
std::string sha256_of(const ByteSource& file);

}  // namespace mckpt::impl
