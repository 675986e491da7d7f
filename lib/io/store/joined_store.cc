// Shifts the numbers of files and tensors that come from the second store: in chunks, in resolved chunks, and
// in their checksums.
#include "io/store/joined_store.h"
#include "core/base/error.h"

#include <algorithm>
#include <filesystem>

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

fs::path real_path(const std::string& path) {
  std::error_code ec;
  fs::path real = fs::canonical(path, ec);
  if (ec) throw Error(Code::kNotFound, "the folder does not exist any more").file(path);
  return real;
}

}  // namespace

JoinedStore::JoinedStore(const Store& first, const Store& second) : first_(first), second_(second) {
  fs::path a = real_path(first.root()), b = real_path(second.root()), common;
  auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  for (auto part = a.begin(); part != differ; ++part) common /= *part;
  root_ = common;
  format_ = first.format();
  opening_ = first.opening();
  for (const auto& [store, folder] : {std::pair{&first, &a}, {&second, &b}})
    for (const StoreFile& f : store->files())
      files_.push_back({(*folder / f.path).lexically_relative(common), f.bytes});
}

Chunk JoinedStore::chunk(i64 t, i64 index) const {
  Chunk out = of(t).chunk(in(t), index);
  if (out.file >= 0) out.file += shift(t);
  return out;
}

ChunkData JoinedStore::resolve(i64 t, i64 index) const {
  ChunkData out = of(t).resolve(in(t), index);
  out.file += shift(t);
  auto move = [&](Checksum& sum) {
    sum.file += shift(t);
    if (second(t) && sum.tensor >= 0) sum.tensor += first_.tensor_count();
  };
  if (out.checksum) move(*out.checksum);
  std::ranges::for_each(out.beneath, move);
  return out;
}

}  // namespace mckpt::impl
