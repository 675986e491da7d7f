// Computes the SHA-256 of tensors. A digest cannot be computed in parts, so a tensor belongs to one thread,
// and threads share the list of tensors: one tensor that is much larger than all others is as fast as one
// thread.
#include "io/values/digest.h"

#include <algorithm>
#include <memory>

#include "io/file/file.h"
#include "io/file/parallel.h"
#include "io/file/sha256.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
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
  constexpr i64 kWindow = 1 << 20;
  Sha256 sum;
  std::vector<u8> window(static_cast<std::size_t>(std::min(kWindow, file.size())));
  for (i64 at = 0; at < file.size();) {
    std::span<u8> to =
        std::span(window).first(static_cast<std::size_t>(std::min<i64>(kWindow, file.size() - at)));
    file.read(at, to);
    sum.update(to);
    at += static_cast<i64>(to.size());
  }
  return sum.hex_digest();
}

}  // namespace mckpt::impl
