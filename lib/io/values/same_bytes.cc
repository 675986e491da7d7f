// Compares tensors of one store, window by window:
//
//   one    |------ window ------|   read in order
//   other  |-- the same range --|   read when a window of the first tensor arrives
//
// Items smaller than a byte have no windows at any item; such tensors are compared by their SHA-256.
#include "io/values/same_bytes.h"

#include <algorithm>
#include <array>
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

bool have_same_bytes(const Store& store, const StoreFiles& files, i64 one, i64 other) {
  if (store.dtype(one) != store.dtype(other) || !std::ranges::equal(store.dims(one), store.dims(other)))
    return false;
  const i64 bits = dtype_info(store.dtype(one)).bits;
  if (bits < 8) {  // a window of such items need not begin with a whole byte
    std::vector<std::string> digests = tensor_digests(store, std::array{one, other}, 1);
    return digests[0] == digests[1];
  }
  TensorReader left(store, files), right(store, files);
  try {
    left.read(one, [&](std::span<const u8> bytes, i64 at) {
      const i64 item = bits / 8, end = at + std::ssize(bytes);
      right.read(other, at / item, end / item, [&](std::span<const u8> there, i64 begin) {
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
  parallel_for(std::ssize(pairs), threads,
               [&](int, i64 i) { same[i] = have_same_bytes(store, files, pairs[i].first, pairs[i].second); });
  return {same.begin(), same.end()};
}

}  // namespace mckpt::impl
