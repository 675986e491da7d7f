// The chunks of a tensor as a line of text, for a test to compare.
#pragma once

#include <string>
#include <string_view>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {

// "rank offsets+sizes" of each chunk of a tensor, "=" for a replica.
inline std::string chunks_of(const Store& store, std::string_view name) {
  std::string out;
  i64 t = find_tensor(store, name);
  for (i64 i = 0; t >= 0 && i < store.chunk_count(t); i++) {
    Chunk c = store.chunk(t, i);
    out += cat(c.rank, c.replica ? "=" : " ", dims_to_string(c.offsets), "+", dims_to_string(c.sizes), " ");
  }
  return out;
}

}  // namespace mckpt::impl
