// Reads a tensor from its chunks: directly if it is one stretch of a file, else through a window into which
// every chunk copies its part.
//
// A chunk is a box of the tensor, and in row-major order a box is a list of runs (pieces of rows, or several
// whole rows). For each window: the runs of the chunk that meet the window are found by binary search; their
// items follow each other in the chunk, so one read gets them; then each run is copied to its place.
//
// Where a tensor is one stretch, the window's address equals the file's offset modulo a page.
#include "io/values/tensor_reader.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/store/cover.h"
#include "io/store/store_files.h"
#include "io/values/chunk_reader.h"

namespace mckpt::impl {
namespace {

// A read runs at a third of its speed when the buffer's address and the file's offset differ within a page.
constexpr i64 kPage = ByteSource::kPage;

}  // namespace

// A chunk as runs of the global tensor: run_items items that follow each other in the chunk and in the
// tensor, one run for each index of the dimensions before run_dim.
//
//   rows 2 and 3 of [8, 8], all columns: one run of 16 items      columns 2 and 3, all rows: eight runs of 2
struct TensorReader::Piece {
  Chunk chunk;
  i32 file = -1;  // of the store; -1: the items are in memory, because the file has them compressed
  std::unique_ptr<ChunkReader> reader;
  std::span<const i64> dims;  // of the tensor
  std::size_t run_dim = 0;    // runs go over this dimension and those behind it
  i64 run_items = 1;
  i64 runs = 1;

  Piece(const Chunk& c, std::span<const i64> tensor_dims) : chunk(c), dims(tensor_dims) {
    std::size_t d = dims.size();
    while (d > 0) {
      d--;
      run_items *= chunk.sizes[d];
      if (chunk.sizes[d] != dims[d]) break;
    }
    run_dim = d;
    for (std::size_t i = 0; i < run_dim; i++) runs *= chunk.sizes[i];
  }

  // The item of the tensor at which run `index` begins.
  i64 run_begin(i64 index) const {
    i64 at = 0, stride = 1;
    for (std::size_t d = dims.size(); d-- > 0;) {
      i64 here = chunk.offsets[d];
      if (d < run_dim) {
        here += index % chunk.sizes[d];
        index /= chunk.sizes[d];
      }
      at += here * stride;
      stride *= dims[d];
    }
    return at;
  }

  // The first run that ends behind item `at` of the tensor; `runs` if there is none.
  i64 run_at(i64 at) const {
    i64 low = 0, high = runs;
    while (low < high) {
      i64 middle = low + (high - low) / 2;
      if (run_begin(middle) + run_items > at) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

TensorReader::TensorReader(const Store& store, const StoreFiles& files, i64 strided_bytes)
    : store_(store), files_(files), strided_bytes_(strided_bytes) {}
TensorReader::~TensorReader() = default;

void TensorReader::forget() {
  tensor_ = -1;
  pieces_.clear();
}

i64 TensorReader::tensor_bytes(const Store& store, i64 tensor) {
  return dtype_bytes(store.dtype(tensor), checked_items(store.dims(tensor)));
}

// Resolves all chunks of the tensor, which opens their files. After an error no tensor is open.
void TensorReader::open(i64 tensor) {
  if (tensor == tensor_) return;
  tensor_ = -1;
  pieces_.clear();
  item_bytes_ = std::max(1, dtype_info(store_.dtype(tensor)).bits / 8);
  check_cover(tensor);
  std::span<const i64> dims = store_.dims(tensor);
  i64 chunks = store_.chunk_count(tensor);
  for (i64 i = 0; i < chunks; i++) {
    Chunk chunk = store_.chunk(tensor, i);
    if (chunk.replica || Shape(chunk.sizes).items() == 0) continue;
    Piece& piece = pieces_.emplace_back(chunk, dims);
    ChunkData data = store_.resolve(tensor, i);
    if (!data.unpacked) piece.file = data.file;
    std::shared_ptr<const ByteSource> file = data.unpacked ? data.unpacked : files_.open(data.file);
    piece.reader = std::make_unique<ChunkReader>(std::move(file), std::move(data), piece.chunk.sizes,
                                                 strided_bytes_ / chunks);
  }
  tensor_ = tensor;
}

// Throws for a hole, and for a chunk outside; chunks that overlap are read all the same.
void TensorReader::check_cover(i64 tensor) const {
  for (const BoxFault& fault : chunk_faults(store_, tensor))
    if (fault.kind != BoxFault::Kind::kOverlap)
      throw Error(cover_code(fault.kind), to_string(fault)).tensor(store_.name(tensor)).file(store_.root());
}

void TensorReader::read(i64 tensor, const Take& take) { read(tensor, 0, store_.shape(tensor).items(), take); }

void TensorReader::read(i64 tensor, i64 begin, i64 end, const Take& take) {
  if (begin == end) return;
  try {
    open(tensor);
    if (is_one_stretch()) return read_direct(pieces_[0], begin, end, take);
    read_pieces(begin, end, take);
  } catch (Error& e) {
    e.default_tensor(store_.name(tensor));
    throw;
  }
}

bool TensorReader::is_one_stretch() const {
  return pieces_.size() == 1 && pieces_[0].reader->plain() &&
         pieces_[0].run_items == store_.shape(tensor_).items();
}

std::optional<TensorReader::Stretch> TensorReader::stretch(i64 tensor) {
  try {
    open(tensor);
  } catch (Error& e) {
    e.default_tensor(store_.name(tensor));
    throw;
  }
  if (!is_one_stretch() || pieces_[0].file < 0) return {};
  return Stretch{pieces_[0].file, pieces_[0].reader->offset()};
}

void TensorReader::read_direct(const Piece& piece, i64 begin, i64 end, const Take& take) {
  window_.resize(kWindowBytes + 2 * kPage);
  DType dtype = store_.dtype(tensor_);
  i64 at = dtype_bytes(dtype, begin), stop = dtype_bytes(dtype, end);
  // Four elements of six bits fill three bytes.
  i64 window = dtype_info(dtype).bits % 8 == 0 ? kWindowBytes : kWindowBytes / 3 * 3;
  u8* page = window_.data() + kPage - reinterpret_cast<std::uintptr_t>(window_.data()) % kPage;
  while (at < stop) {
    i64 offset = piece.reader->offset() + at;
    std::span<u8> to(page + offset % kPage, static_cast<std::size_t>(std::min(window, stop - at)));
    piece.reader->file().read(offset, to);
    take(to, at);
    at += static_cast<i64>(to.size());
  }
}

void TensorReader::read_pieces(i64 begin, i64 end, const Take& take) {
  if (dtype_info(store_.dtype(tensor_)).bits % 8 != 0)
    throw Error(Code::kBadShards, "a tensor of elements smaller than a byte is in pieces")
        .found(dtype_name(store_.dtype(tensor_)));
  window_.resize(kWindowBytes + 2 * kPage);
  i64 most = kWindowBytes / item_bytes_;
  for (i64 at = begin; at < end; at += most) {
    i64 stop = std::min(at + most, end);
    // Backwards, so that where chunks overlap the first is the last to write.
    for (std::size_t p = pieces_.size(); p-- > 0;) fill(pieces_[p], at, stop, window_.data());
    take(std::span(window_).first(static_cast<std::size_t>((stop - at) * item_bytes_)), at * item_bytes_);
  }
}

// Copies the items of [begin, end) that the piece contains to their places in the window. They follow each
// other in the piece, so they are read at once.
void TensorReader::fill(const Piece& piece, i64 begin, i64 end, u8* window) {
  i64 first = piece.run_at(begin);
  if (first == piece.runs) return;
  i64 skip = std::max<i64>(0, begin - piece.run_begin(first));
  i64 last = first;  // behind the last run that begins before the end
  while (last < piece.runs && piece.run_begin(last) < end) last++;
  if (first == last) return;
  i64 cut = std::max<i64>(0, piece.run_begin(last - 1) + piece.run_items - end);
  i64 local = first * piece.run_items + skip, items = last * piece.run_items - cut - local;
  if (last - first == 1) {
    i64 at = piece.run_begin(first) + skip - begin;
    piece.reader->read(local,
                       std::span(window + at * item_bytes_, static_cast<std::size_t>(items * item_bytes_)));
    return;
  }
  stage_.resize(static_cast<std::size_t>(items * item_bytes_));
  piece.reader->read(local, stage_);
  const u8* from = stage_.data();
  for (i64 run = first; run < last; run++) {
    i64 run_begin = piece.run_begin(run);
    i64 lo = std::max(run_begin, begin), hi = std::min(run_begin + piece.run_items, end);
    std::size_t bytes = static_cast<std::size_t>((hi - lo) * item_bytes_);
    std::memcpy(window + (lo - begin) * item_bytes_, from, bytes);
    from += bytes;
  }
}

}  // namespace mckpt::impl
