// Compares two tensors, window by window:
//
//   one    |------ window ------|   read in order
//   other  |-- the same range --|   read when a window of the first tensor arrives
//
// Items smaller than a byte have no windows at any item; such tensors are compared by their SHA-256.
#include "io/values/same_bytes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "core/items/dtype.h"
#include "io/file/parallel.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/digest.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

struct Differs {};  // ends a read early

// A tensor, with its store.
struct Side {
  const Store& store;
  const StoreFiles& files;
  i64 tensor;
};

bool have_same_bytes(const Side& one, const Side& other) {
  const DType type = one.store.dtype(one.tensor);
  if (type != other.store.dtype(other.tensor) ||
      !std::ranges::equal(one.store.dims(one.tensor), other.store.dims(other.tensor)))
    return false;
  const i64 bits = dtype_info(type).bits;
  if (bits < 8)  // a window of such items need not begin with a whole byte
    return tensor_digests(one.store, std::array{one.tensor}, 1) ==
           tensor_digests(other.store, std::array{other.tensor}, 1);
  TensorReader left(one.store, one.files), right(other.store, other.files);
  try {
    left.read(one.tensor, [&](std::span<const u8> bytes, i64 at) {
      const i64 item = bits / 8, end = at + std::ssize(bytes);
      right.read(other.tensor, at / item, end / item, [&](std::span<const u8> there, i64 begin) {
        if (std::memcmp(bytes.data() + (begin - at), there.data(), there.size()) != 0) throw Differs();
      });
    });
  } catch (Differs) {
    return false;
  }
  return true;
}

}  // namespace

std::vector<bool> have_same_bytes(const Store& store, std::span<const std::pair<i64, i64>> pairs,
                                  int threads) {
  StoreFiles files(store);
  std::vector<char> same(pairs.size());  // not bool: threads write neighbours
  parallel_for(std::ssize(pairs), threads, [&](int, i64 i) {
    same[i] = have_same_bytes(Side{store, files, pairs[i].first}, {store, files, pairs[i].second});
  });
  return {same.begin(), same.end()};
}

i64 first_unlike(const Store& one, const Store& other, std::span<const std::pair<i64, i64>> pairs,
                 int threads) {
  StoreFiles files(one), other_files(other);
  std::atomic<i64> first = std::ssize(pairs);
  parallel_for(std::ssize(pairs), threads, [&](int, i64 i) {
    if (i > first || have_same_bytes(Side{one, files, pairs[i].first}, {other, other_files, pairs[i].second}))
      return;
    for (i64 known = first; i < known && !first.compare_exchange_weak(known, i);) continue;
  });
  return first == std::ssize(pairs) ? -1 : first.load();
}

}  // namespace mckpt::impl
