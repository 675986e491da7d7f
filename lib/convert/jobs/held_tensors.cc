// Lists what a rank holds. Digests are made from the files of the model: a HoldingReader for each thread
// gathers the items of a tensor piece by piece, so that the memory does not depend on the size of a tensor.
#include "convert/jobs/held_tensors.h"

#include <algorithm>

#include "convert/jobs/holding_reader.h"
#include "convert/jobs/stored_types.h"
#include "core/fsdp/grid.h"
#include "io/file/parallel.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/sums/sha256.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/cp_rows.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// All rows of the parameter.
Piece whole_piece(const ModelParameter& p) { return {"", 0, p.shape().rank() > 0 ? p.shape()[0] : 1}; }

// The parameter as one tensor that the rank holds completely, under its name at run time.
HeldTensor whole(const ModelParameter& p, DType dtype) {
  const Shape& shape = p.shape();
  std::vector<i64> sizes(shape.dims().begin(), shape.dims().end());
  std::vector<i64> offsets(sizes.size(), 0);
  return {.name = p.name,
          .parameter = &p,
          .shape = shape,
          .offsets = std::move(offsets),
          .sizes = std::move(sizes),
          .items = {0, shape.items()},
          .dtype = dtype,
          .piece = whole_piece(p)};
}

std::vector<RowRange> cp_slice_on(const HolderRank& rank, const ModelParameter& p) {
  if (rank.grid.cp == 1) return {};
  return cp_slice_of(p, rank.model, rank.grid, rank.cell.cp);
}

// The rows of a piece among the rows of its parameter, in the global tensor of the piece.
std::vector<RowRange> rows_of_piece(std::span<const RowRange> rows, const ModelParameter& p,
                                    const Piece& piece) {
  const Part part = distinct_part(*p.holding, p.part);
  i64 global = (p.holding->partition_dim == 0 ? part.index * piece.rows : 0) - piece.first_row;
  std::vector<RowRange> out;
  for (const RowRange& r : rows) {
    i64 begin = std::max(r.begin, piece.first_row), end = std::min(r.end, piece.first_row + piece.rows);
    if (begin < end) out.push_back({begin + global, end + global});
  }
  return out;
}

}  // namespace

std::vector<HeldTensor> held_at_run_time(const std::vector<ModelParameter>& parameters,
                                         const HolderRank& rank, const StoredTypes& types) {
  std::vector<HeldTensor> out;
  for (const ModelParameter& p : parameters) {
    out.push_back(whole(p, types.of(p, p.name)));
    out.back().cp_rows = cp_slice_on(rank, p);
  }
  return out;
}

std::vector<HeldTensor> held_as_saved(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                                      const HolderRank& rank, const StoredTypes& types) {
  std::vector<HeldTensor> out;
  for (const FsdpLayout::StoredKey& key : layout.keys(rank.cell.ep)) {
    FsdpTensor t = layout.share(key, rank.cell);
    const ModelParameter& p = parameters[t.parameter];
    t.key = layout.name(key);
    DType dtype = types.of(p, t.key);
    out.push_back({std::move(t.key), &p, t.global, std::move(t.offsets), std::move(t.sizes), t.items, dtype});
    out.back().cp_rows = rows_of_piece(cp_slice_on(rank, p), p, key.piece);
    out.back().piece = key.piece;
  }
  return out;
}

std::vector<HeldTensor> held_wrapped(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                                     const HolderRank& rank, const StoredTypes& types) {
  std::vector<HeldTensor> out;
  for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++) {
    const ModelParameter& p = parameters[i];
    FsdpTensor t = layout.share({i, whole_piece(p)}, rank.cell);
    HeldTensor held = whole(p, types.of(p, p.name));
    held.shape = t.global, held.offsets = std::move(t.offsets), held.sizes = std::move(t.sizes);
    held.items = t.items;
    out.push_back(std::move(held));
  }
  return out;
}

i64 HeldItems::bytes() const {
  i64 items = 0;
  for (const ItemRange& r : ranges) items += r.items();
  return dtype_bytes(dtype, items);
}

std::vector<std::string> item_digests(const Store& store, std::span<const HeldItems> wanted, int threads,
                                      const std::function<void(i64 bytes)>& progress) {
  StoreFiles files(store);
  std::vector<std::unique_ptr<HoldingReader>> readers;
  for (int i = 0; i < threads; i++) readers.push_back(std::make_unique<HoldingReader>(store, files));
  std::vector<std::string> digests(wanted.size());
  parallel_for(std::ssize(wanted), threads, [&](int worker, i64 i) {
    const HeldItems& w = wanted[i];
    Sha256 sha;
    for (const ItemRange& range : w.ranges)
      readers[worker]->read(*w.parameter, range, w.dtype, [&](std::span<const u8> bytes) {
        sha.update(bytes);
        progress(std::ssize(bytes));
      });
    digests[i] = sha.hex_digest();
  });
  return digests;
}

std::vector<std::string> held_digests(const Store& store, std::span<const HeldTensor> held, int threads,
                                      const std::function<void(i64 bytes)>& progress) {
  std::vector<HeldItems> wanted;
  for (const HeldTensor& h : held) wanted.push_back({h.parameter, {h.items}, h.dtype});
  return item_digests(store, wanted, threads, progress);
}

}  // namespace mckpt::impl
