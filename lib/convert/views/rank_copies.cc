// A checksum is of a record, which may have more than the tensor: parameters that are views of one buffer are saved with
// the whole buffer. Then the tensors are read.
#include "convert/views/rank_copies.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/parallel.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostNamed = 20;

// Whether the records of the two tensors have equal sums and the tensors are at the same place in them.
bool have_same_sum(const Store& store, i64 one, i64 other) {
  const ChunkData a = store.resolve(one, 0), b = store.resolve(other, 0);
  return a.checksum && b.checksum && a.checksum->bytes == b.checksum->bytes &&
         a.checksum->crc32 == b.checksum->crc32 && a.strides == b.strides && a.big_endian == b.big_endian &&
         a.dtype == b.dtype && a.offset - a.checksum->offset == b.offset - b.checksum->offset &&
         std::ranges::equal(store.dims(one), store.dims(other));
}

}  // namespace

// The sums decide where they can; other copies are read.
void refuse_unlike_copies(const Store& store, std::span<const std::pair<i64, i64>> copies, bool read_all) {
  std::vector<std::pair<i64, i64>> read;
  for (auto [one, other] : copies)
    if (read_all || !have_same_sum(store, one, other)) read.emplace_back(one, other);
  std::vector<bool> same = have_same_bytes(store, read, default_threads());
  std::vector<std::string> unlike;
  std::size_t first = read.size();
  for (std::size_t i = 0; i < read.size(); i++) {
    if (same[i]) continue;
    first = std::min(first, i);
    unlike.push_back(
        cat(escaped(store.name(read[i].second)), " differs from ", escaped(store.name(read[i].first))));
  }
  if (unlike.empty()) return;
  const i64 count = std::ssize(unlike);
  unlike.resize(std::min(unlike.size(), kMostNamed));
  throw Error(Code::kBadShards, cat("ranks have ", counted(count, "tensor"),
                                    " that should be the same in all of them, and are not"))
      .file(file_path(store, store.chunk(read[first].second, 0).file))
      .tensor(store.name(read[first].second))
      .each_note(unlike)
      .help("files of several saves may be in the folder; copy it again");
}

}  // namespace mckpt::impl
