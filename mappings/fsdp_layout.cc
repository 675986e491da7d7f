#include "mappings/fsdp_layout.h"

#include <algorithm>

namespace mckpt {
namespace {

std::string disk_key(const ModelParameter& p) { return cat("model.module.", p.global_name); }

// In a real run each step of preparing the state takes keys out of the dictionary and puts what replaces them
// at its end: gated parameters first, gated delta nets next, and, where expert numbers change, experts last.
void order_as_saved(const std::vector<ModelParameter>& parameters, i64 ep_rank,
                    std::vector<FsdpTensor>& tensors) {
  auto split_of = [&](const FsdpTensor& t) {
    return parameters[static_cast<std::size_t>(t.parameter)].split;
  };
  auto put_last = [&](auto&& moves) {
    std::stable_partition(tensors.begin(), tensors.end(), [&](const FsdpTensor& t) { return !moves(t); });
  };
  put_last([&](const FsdpTensor& t) { return split_of(t) == KeySplit::kSwiglu; });
  put_last([&](const FsdpTensor& t) {
    return split_of(t) == KeySplit::kGdnInProj || split_of(t) == KeySplit::kGdnConv;
  });
  if (ep_rank > 0)
    put_last([&](const FsdpTensor& t) { return parameters[static_cast<std::size_t>(t.parameter)].expert(); });
}

}  // namespace

void refuse_pipeline(const Grid& grid) {
  if (grid.pp > 1)
    throw Error(Code::kBadLayout, "Megatron-FSDP has no pipeline stages")
        .expected("--pp 1")
        .found(grid.pp)
        .note(
            "with more, every stage numbers its layers from 0 and writes them under the same keys: layers "
            "are lost");
}

FsdpLayout::FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model,
                       const Grid& grid, const FsdpSetup& setup)
    : parameters_(parameters), model_(model), grid_(grid), sharded_(setup.strategy != Strategy::kNoShard) {
  refuse_pipeline(grid);
  refuse_unsavable(setup);
  pack_groups(setup);
}

void FsdpLayout::refuse_unsavable(const FsdpSetup& setup) const {
  if (setup.strategy != Strategy::kNoShard) return;
  for (const ModelParameter& p : parameters_)
    if (p.split != KeySplit::kNone)
      throw Error(Code::kBadLayout,
                  "a model with parameters that are stored in parts cannot be saved under no_shard")
          .tensor(p.global_name)
          .note("a real run stops at the same point: without flat shards the parts have no ranges")
          .help("choose --strategy optim, optim_grads or optim_grads_params");
}

void FsdpLayout::pack_groups(const FsdpSetup& setup) {
  std::vector<Parameter> list;
  std::vector<i64> index;  // of a list entry among the parameters
  for (std::size_t i = 0; i < parameters_.size(); i++) {
    const ModelParameter& p = parameters_[i];
    if (p.buffer()) continue;
    bool unit = (p.unit_class == UnitClass::kTransformerLayer && setup.transformer_units) ||
                (p.unit_class == UnitClass::kMambaLayer && setup.mamba_units);
    list.push_back({p.shape(), p.dtype, p.expert(), p.trainable, false, unit ? p.unit : kNoUnit});
    index.push_back(static_cast<i64>(i));
  }
  seats_.resize(parameters_.size());
  for (Bucket& bucket : buckets_of(list, {setup.strategy, setup.unit_scope, setup.bucket_items})) {
    std::vector<Shape> shapes;
    for (i64& member : bucket.members) {
      shapes.push_back(list[static_cast<std::size_t>(member)].shape);
      member = index[static_cast<std::size_t>(member)];
      seats_[static_cast<std::size_t>(member)] = {std::ssize(groups_), std::ssize(shapes) - 1};
    }
    i64 ranks = bucket.expert ? grid_.edp() : grid_.dp * grid_.cp;
    FlatBuffer buffer = pack(shapes, {Engine::kV1, setup.strategy, ranks, grid_.hsdp, grid_.outer});
    if (sharded_) refuse_unaligned(bucket, buffer);
    groups_.push_back({std::move(bucket), std::move(buffer)});
  }
}

// Wherever a cut falls inside a row no rank can be saved, so it is refused for all.
void FsdpLayout::refuse_unaligned(const Bucket& bucket, const FlatBuffer& buffer) const {
  for (i64 m = 0; m < std::ssize(bucket.members); m++)
    if (std::optional<i64> item = unaligned_cut(buffer, m)) {
      const ModelParameter& p =
          parameters_[static_cast<std::size_t>(bucket.members[static_cast<std::size_t>(m)])];
      throw Error(Code::kRowUnaligned, "a shard would begin inside a row of a parameter")
          .tensor(p.global_name)
          .expected(cat("a multiple of ", p.shape().row_items(), " items"))
          .found(*item)
          .note("building the shards fails in a real run as well")
          .help("choose another --dp or --strategy");
    }
}

Rows FsdpLayout::rows_of(i32 parameter, const Cell& cell, ItemRange piece) const {
  const Seat& seat = seats_[static_cast<std::size_t>(parameter)];
  if (!sharded_ || seat.group < 0)
    return {0, piece.items() / parameters_[static_cast<std::size_t>(parameter)].shape().row_items()};
  const Group& group = groups_[static_cast<std::size_t>(seat.group)];
  FsdpPlace place = group.bucket.expert ? expert_place(grid_, cell) : dense_place(grid_, cell);
  return rows_on_shard(group.buffer, seat.member, place.shard, piece);
}

FsdpTensor FsdpLayout::tensor(i32 parameter, const Cell& cell, const Piece& piece) const {
  const ModelParameter& p = parameters_[static_cast<std::size_t>(parameter)];
  const Shape& local = p.shape();
  i64 row_items = local.row_items();
  Rows rows = rows_of(parameter, cell, items_of(piece, row_items));
  int dim = p.holding->partition_dim;
  FsdpTensor t;
  t.key = p.split == KeySplit::kNone ? disk_key(p) : piece_key(p.split, disk_key(p), piece);
  t.parameter = parameter;
  t.sizes.assign(local.dims().begin(), local.dims().end());
  t.offsets.assign(t.sizes.size(), 0);
  std::vector<i64> global = t.sizes;
  if (local.rank() > 0) global[0] = piece.rows;
  if (dim > 0) t.offsets[static_cast<std::size_t>(dim)] = p.part.index * local[dim];
  if (local.rank() > 0) {
    t.sizes[0] = rows.count;
    t.offsets[0] = rows.begin + (dim == 0 ? p.part.index * piece.rows : 0);
  }
  if (dim >= 0) global[static_cast<std::size_t>(dim)] *= p.part.count;
  t.global = Shape(global);
  i64 first = (piece.first_row + rows.begin) * row_items;
  t.items = {first, first + rows.count * row_items};
  return t;
}

std::vector<FsdpTensor> FsdpLayout::tensors(const Cell& cell) const {
  std::vector<FsdpTensor> out;
  for (i32 i = 0; i < static_cast<i32>(parameters_.size()); i++) {
    const ModelParameter& p = parameters_[static_cast<std::size_t>(i)];
    i64 rows = p.shape().rank() > 0 ? p.shape()[0] : 1;
    if (p.split == KeySplit::kNone) {
      out.push_back(tensor(i, cell, {"", 0, rows}));
      continue;
    }
    GlobalShape whole = global_shape(*p.holding, p.part.count);
    for (const Piece& piece : pieces_of(p.split, model_, whole, p.part))
      out.push_back(tensor(i, cell, piece));
  }
  order_as_saved(parameters_, cell.ep, out);
  return out;
}

}  // namespace mckpt
