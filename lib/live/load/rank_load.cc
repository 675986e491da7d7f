// The tensors of one rank. Each parameter has its place in a block; the pieces under which it would be saved
// are chunks at their places inside it, and an import fills them:
//
//   linear_fc1.weight at byte 4096     piece _w, local rows 0-3 at 4096     piece _v, local rows 4-7 at 4096 + 4 rows
#include "convert/dialects/fsdp/run.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/stored_chunks.h"
#include "convert/keys/value_options.h"
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/items/item_run.h"
#include "core/items/tiling.h"
#include "hf/model.h"
#include "io/dcp/keys/key.h"
#include "live/load/block_places.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"

namespace mckpt::impl {
namespace {

// The pieces of all parameters of the rank, under the keys of a table, at their places on the device.
class RankChunks final : public ChunkList {
 public:
  explicit RankChunks(const KeyTable& keys) : keys_(keys) {}

  void add(const FsdpTensor& piece, const TensorLoad::Tensor& whole) {
    i32 key = keys_.find(*model_key(piece.key));
    if (key < 0) throw Error(Code::kInternal, "a rank has a key that is not in the table").tensor(piece.key);
    i64 offset = whole.offset + dtype_bytes(whole.dtype, piece.items.begin);
    chunks_.push_back({key, whole.block, offset, whole.dtype, piece.offsets, piece.sizes});
  }

  i64 size() const override { return std::ssize(chunks_); }
  i32 key(i64 c) const override { return chunks_[c].key; }
  Box box(i64 c) const override { return {chunks_[c].offsets, chunks_[c].sizes}; }
  std::span<const i64> dims(i64 c) const override { return keys_[key(c)].shape.dims(); }
  DType dtype(i64 c) const override { return chunks_[c].dtype; }
  std::string name(i64 c) const override { return keys_[key(c)].name; }
  Place place(i64 c) const override { return {chunks_[c].block, chunks_[c].offset, chunks_[c].dtype}; }

 private:
  struct Entry {
    i32 key, block;
    i64 offset;
    DType dtype;
    std::vector<i64> offsets, sizes;
  };

  const KeyTable& keys_;
  std::vector<Entry> chunks_;
};

struct RankParts {
  RankParts(const ModelMap& map, const RunSetup& setup, const Grid& grid)
      : keys(map, setup, {grid.tp, grid.etp}), chunks(keys) {}

  KeyTable keys;
  RankChunks chunks;
};

// Throws for a rule about types that matches no parameter of any rank.
void refuse_unmatched(const ModelMap& map, const RunSetup& setup, const DtypeRules& rules) {
  if (rules.empty()) return;
  std::vector<ModelParameter> all = map.parameters(Grid{}, Cell{}, setup);
  rules.refuse_unmatched(std::ssize(all), [&](i64 i) -> std::string_view { return all[i].name; });
}

// The plan of a piece proves that each of its items is written once; this shows that the pieces are all of
// the parameter, so that no memory is left as it was allocated.
void refuse_gaps(const ModelParameter& p, std::span<const ItemRange> filled) {
  if (std::optional<TilingFault> fault = tiling_fault(filled, p.shape().items()))
    throw Error(Code::kNotTiled, "the pieces of a parameter are not the whole of it")
        .tensor(p.name)
        .expected("each item in one piece")
        .found(cat("item ", fault->item, " in ", fault->times));
}

}  // namespace

TensorLoad plan_rank(const HfModel& model, const RankToLoad& of) {
  if (!model.has_data()) throw Error(Code::kNotFound, "there are no weights to load").file(model.path);
  const ModelMap& map = *model.map;
  const ValueOptions& values = of.values;
  RunSetup setup{vocab_rows(map.model(), map.family(), of.grid.tp, values.vocab),
                 values.params_dtype.of(map.model()), of.groups, of.spelling};
  refuse_without_effect(setup.spelling, map, setup);
  refuse_unmatched(map, setup, values.rules);
  const StoredTypes types{values.dtype, [&](std::string_view name) { return values.rules.of(name); }};
  const std::vector<ModelParameter> parameters = map.parameters(of.grid, cell_of(of.grid, of.rank), setup);

  auto parts = std::make_shared<RankParts>(map, setup, of.grid);
  TensorLoad load;
  BlockPlaces places(load);
  for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++) {
    const ModelParameter& p = parameters[i];
    DType dtype = types.of(p, p.name);
    const TensorLoad::Tensor& whole =
        places.add(p.name, dtype, p.shape(), dtype_bytes(dtype, p.shape().items()));
    if (whole.block < 0) continue;
    std::vector<ItemRange> filled;
    for (const Piece& piece : stored_pieces(p, map.model())) {
      FsdpTensor t = fsdp_tensor(parameters, i, piece, {0, piece.rows});
      parts->chunks.add(t, whole);
      filled.push_back(t.items);
    }
    refuse_gaps(p, filled);
  }
  load.job = std::make_unique<ChunkJob>(import_job(*model.store, parts->keys, parts->chunks));
  load.owned = std::move(parts);
  return load;
}

}  // namespace mckpt::impl
