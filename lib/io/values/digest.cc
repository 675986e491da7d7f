// Computes the SHA-256 of tensors. A digest cannot be computed in parts, so a tensor belongs to one thread,
// and threads share the list of tensors: one tensor that is much larger than all others is as fast as one
// thread.
#include "io/values/digest.h"

#include <algorithm>
#include <memory>

#include "io/file/file.h"
#include "io/file/parallel.h"
#include "io/listing/listed_file.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/sums/sha256.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

std::vector<std::string> tensor_digests(const Store& store, std::span<const i64> tensors, int threads,
                                        const std::function<void(i64 bytes)>& progress) {
  StoreFiles files(store);
  std::vector<std::unique_ptr<TensorReader>> readers;
  for (int i = 0; i < threads; i++) readers.push_back(std::make_unique<TensorReader>(store, files));
  std::vector<std::string> digests(tensors.size());
  parallel_for(static_cast<i64>(tensors.size()), threads, [&](int worker, i64 i) {
    Sha256 sha;
    readers[worker]->read(tensors[i], [&](std::span<const u8> bytes, i64) {
      sha.update(bytes);
      progress(std::ssize(bytes));
    });
    digests[i] = sha.hex_digest();
  });
  return digests;
}

std::string sha256_of(const ByteSource& file) {
  return FileSum(file, [](i64) {}).sha256();
}

}  // namespace mckpt::impl
