// SHA-256 of tensors: over the contiguous little-endian bytes of the tensor, so that equal values give equal
// digests in any format and any sharding. With torch:
//   hashlib.sha256(t.contiguous().flatten().view(torch.uint8).numpy()).hexdigest()
//
//   model.safetensors: w [4, 4]    ckpt/: w = rows 0..1 in one file, rows 2..3 in another    equal digests
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;
class Store;

// Hexadecimal digests of the tensors, in the order of `tensors`. Reads all their bytes; each thread needs one
// TensorReader's memory. `progress` is called by every
// thread with the bytes that it has read. Throws what TensorReader::read() throws.
std::vector<std::string> tensor_digests(
    const Store& store, std::span<const i64> tensors, int threads,
    const std::function<void(i64 bytes)>& progress = [](i64) {});

// The hexadecimal SHA-256 of all bytes of a file. Throws kReadFailed.
std::string sha256_of(const ByteSource& file);

}  // namespace mckpt::impl
