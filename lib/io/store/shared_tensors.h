// Tensors of a store that share bytes of a file: tied weights, or views of one storage in a .pt file.
//
//   embed.weight    bytes 0..4095       lm_head.weight  bytes 0..4095       shared: lm_head.weight
//
// A format without shared storage stores such tensors in full, which the conversion reports.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// The members of `tensors` whose stretch of a file overlaps the stretch of a tensor before it, in the order
// of begin, end and number: if two are tied, the second. Tensors of several chunks, empty ones, and
// those whose bytes are not bytes of a file (ChunkData::unpacked) are never among them. Throws what
// Store::resolve() throws.
std::vector<i64> shared_tensors(const Store& store, std::span<const i64> tensors);

}  // namespace mckpt::impl
