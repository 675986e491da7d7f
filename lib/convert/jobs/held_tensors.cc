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

// The parameter as one tensor that the rank holds completely, under its name at run time.
HeldTensor whole(const ModelParameter& p, DType dtype) {
  const Shape& shape = p.shape();
  std::vector<i64> sizes(shape.dims().begin(), shape.dims().end());
  return {p.name, &p, shape, std::vector<i64>(sizes.size(), 0), sizes, {0, shape.items()}, dtype};
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
  }
  return out;
}

std::vector<std::string> held_digests(const Store& store, std::span<const HeldTensor> held, int threads,
                                      const std::function<void(i64 bytes)>& progress) {
  StoreFiles files(store);
  std::vector<std::unique_ptr<HoldingReader>> readers;
  for (int i = 0; i < threads; i++) readers.push_back(std::make_unique<HoldingReader>(store, files));
  std::vector<std::string> digests(held.size());
  parallel_for(std::ssize(held), threads, [&](int worker, i64 i) {
    const HeldTensor& h = held[i];
    Sha256 sha;
    readers[worker]->read(*h.parameter, h.items, h.dtype, [&](std::span<const u8> bytes) {
      sha.update(bytes);
      progress(std::ssize(bytes));
    });
    digests[i] = sha.hex_digest();
  });
  return digests;
}

}  // namespace mckpt::impl
