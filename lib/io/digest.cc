#include "io/digest.h"

#include <memory>

#include "io/parallel.h"
#include "io/sha256.h"
#include "io/tensor_reader.h"

namespace mckpt {

std::vector<std::string> tensor_digests(const Store& store, std::span<const i64> tensors, int threads) {
  StoreFiles files(store);
  std::vector<std::unique_ptr<TensorReader>> readers;
  for (int i = 0; i < threads; i++) readers.push_back(std::make_unique<TensorReader>(store, files));
  std::vector<std::string> digests(tensors.size());
  parallel_for(static_cast<i64>(tensors.size()), threads, [&](int worker, i64 i) {
    Sha256 sha;
    readers[static_cast<std::size_t>(worker)]->read(
        tensors[static_cast<std::size_t>(i)], [&](std::span<const u8> bytes, i64) { sha.update(bytes); });
    digests[static_cast<std::size_t>(i)] = sha.hex_digest();
  });
  return digests;
}

}  // namespace mckpt
