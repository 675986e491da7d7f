// Reads a chunked dataset row by row, with a few unpacked chunks in memory.
#include "io/hdf5/chunks.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/hdf5/filters.h"
#include "io/hdf5/layout.h"

namespace mckpt::impl {
namespace {

// The most memory for unpacked chunks of one dataset.
constexpr i64 kMostRowBytes = i64{128} << 20;

// Bytes of all its values.
i64 bytes_of(const Hdf5Dataset& d) {
  i64 bytes = d.type.bytes;
  for (i64 n : d.dims) bytes = checked_mul(bytes, n, "the size of a dataset");
  return bytes;
}

}  // namespace

Hdf5Chunks::Hdf5Chunks(const ByteSource& file, i64 base, const Hdf5Dataset& dataset)
    : ByteSource(bytes_of(dataset)),
      file_(file),
      base_(base),
      dataset_(dataset),
      chunk_bytes_(chunk_bytes(dataset)) {
  dims_ = dataset.dims;
  chunk_dims_ = dataset.chunk_dims;
  if (dims_.empty()) dims_ = chunk_dims_ = {1};
  widen(dataset.type.bytes);
  while (dims_.size() > 1 && dims_.back() == chunk_dims_.back()) {
    i64 whole = dims_.back();
    dims_.pop_back();
    chunk_dims_.pop_back();
    widen(whole);
  }
  if (dataset.filters.empty()) return;
  i64 row = 1;
  for (std::size_t d = 1; d < dims_.size(); d++)
    row = checked_mul(row, ceil_div(dims_[d], chunk_dims_[d]), "the number of chunks");
  if (i64 bytes = checked_mul(row, chunk_bytes_, "the size of a row of chunks"); bytes > kMostRowBytes)
    throw Error(Code::kUnsupportedHdf5, "the chunks are too large to be unpacked in order")
        .expected(cat("at most ", kMostRowBytes, " bytes in a row of chunks"))
        .found(cat(counted(bytes, "byte"), " in ", counted(row, "chunk")))
        .help("h5repack -l CHUNK=... IN OUT writes the file with smaller chunks");
  most_cached_ = static_cast<std::size_t>(row);
}

void Hdf5Chunks::widen(i64 factor) {
  dims_.back() = checked_mul(dims_.back(), factor, "a dimension in bytes");
  chunk_dims_.back() = checked_mul(chunk_dims_.back(), factor, "a chunk in bytes");
}

// Walks along the last dimension, in each row from chunk to chunk: `place` is the chunk's number in the
// grid, `at` the offset in the chunk.
void Hdf5Chunks::read_inside(i64 offset, std::span<u8> to) const {
  while (!to.empty()) {
    std::size_t last = dims_.size() - 1;
    i64 rest = offset / dims_[last], column = offset % dims_[last];
    i64 place = column / chunk_dims_[last], places = ceil_div(dims_[last], chunk_dims_[last]);
    i64 at = column % chunk_dims_[last], stride = chunk_dims_[last];
    i64 run = std::min(chunk_dims_[last] - at, dims_[last] - column);
    for (std::size_t d = last; d-- > 0;) {
      i64 index = rest % dims_[d];
      rest /= dims_[d];
      place += index / chunk_dims_[d] * places;
      places *= ceil_div(dims_[d], chunk_dims_[d]);
      at += index % chunk_dims_[d] * stride;
      stride *= chunk_dims_[d];
    }
    std::span<u8> part = to.first(std::min(to.size(), static_cast<std::size_t>(run)));
    read_in_chunk(place, at, part);
    to = to.subspan(part.size());
    offset += static_cast<i64>(part.size());
  }
}

// pre: `to` is inside the chunk.
void Hdf5Chunks::read_in_chunk(i64 place, i64 at, std::span<u8> to) const {
  auto chunk = std::lower_bound(dataset_.chunks.begin(), dataset_.chunks.end(), place,
                                [](const Hdf5Chunk& c, i64 p) { return c.place < p; });
  if (chunk == dataset_.chunks.end() || chunk->place != place) return fill(at, to);
  if (dataset_.filters.empty()) return file_.read(base_ + chunk->offset + at, to);
  Bytes bytes = unpacked(*chunk);
  std::copy_n(bytes->begin() + at, to.size(), to.begin());
}

// Repeats the fill value. A chunk begins with an element, so byte `at` is byte `at % size` of one.
void Hdf5Chunks::fill(i64 at, std::span<u8> to) const {
  if (dataset_.fill.empty()) return std::fill(to.begin(), to.end(), u8{0});
  std::size_t phase = static_cast<std::size_t>(at % dataset_.type.bytes);
  for (std::size_t i = 0; i < to.size(); i++) to[i] = dataset_.fill[(phase + i) % dataset_.fill.size()];
}

// The unpacked chunk, null if it is not in memory.
Hdf5Chunks::Bytes Hdf5Chunks::cached(i64 place) const {
  std::lock_guard lock(mutex_);
  auto known = cache_.find(place);
  return known == cache_.end() ? nullptr : known->second;
}

// Reads and unpacks the chunk, and keeps it in place of the oldest. Two threads may unpack the same chunk;
// both results are equal.
Hdf5Chunks::Bytes Hdf5Chunks::unpacked(const Hdf5Chunk& chunk) const {
  if (Bytes known = cached(chunk.place)) return known;
  i64 offset = base_ + chunk.offset;
  try {
    auto bytes = std::make_shared<const std::vector<u8>>(
        unfiltered(file_.read(offset, chunk.bytes), dataset_.filters, chunk.skipped, chunk_bytes_));
    std::lock_guard lock(mutex_);
    if (order_.size() == most_cached_) {
      cache_.erase(order_.front());
      order_.pop_front();
    }
    if (cache_.emplace(chunk.place, bytes).second) order_.push_back(chunk.place);
    return bytes;
  } catch (Error& e) {
    e.offset(offset);
    throw;
  }
}

}  // namespace mckpt::impl
