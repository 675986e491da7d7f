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

std::vector<Piece> stored_pieces(const ModelParameter& p, const ModelConfig& model) {
  if (p.split == KeySplit::kNone) return {{"", 0, p.shape().rank() > 0 ? p.shape()[0] : 1}};
  return pieces_of(p.split, model, global_shape(*p.holding, p.part.count), p.part);
}

FsdpTensor fsdp_tensor(const std::vector<ModelParameter>& parameters, i32 index, const Piece& piece,
                       Rows rows) {
  const ModelParameter& p = parameters[static_cast<std::size_t>(index)];
  const Shape& local = p.shape();
  int dim = p.holding->partition_dim;
  FsdpTensor t;
  t.key = p.split == KeySplit::kNone ? disk_key(p) : piece_key(p.split, disk_key(p), piece);
  t.parameter = index;
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
  i64 row_items = local.row_items(), first = (piece.first_row + rows.begin) * row_items;
  t.items = {first, first + rows.count * row_items};
  return t;
}

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
    : FsdpLayout(parameters, model, grid, pack_groups(parameters, members_of(parameters, setup), grid, setup),
                 setup.strategy != Strategy::kNoShard) {
  if (setup.saved) refuse_unsavable();
}

FsdpLayout::FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model,
                       const Grid& grid, std::vector<FsdpGroup> groups, bool sharded)
    : parameters_(parameters), model_(model), grid_(grid), sharded_(sharded), groups_(std::move(groups)) {
  refuse_pipeline(grid);
  seats_.resize(parameters_.size());
  for (i64 g = 0; g < std::ssize(groups_); g++) {
    const std::vector<i64>& members = groups_[static_cast<std::size_t>(g)].bucket.members;
    for (i64 m = 0; m < std::ssize(members); m++)
      seats_[static_cast<std::size_t>(members[static_cast<std::size_t>(m)])] = {g, m};
  }
}

void FsdpLayout::refuse_unsavable() const {
  if (sharded_) return;
  for (const ModelParameter& p : parameters_)
    if (p.split != KeySplit::kNone)
      throw Error(Code::kBadLayout,
                  "a model with parameters that are stored in parts cannot be saved under no_shard")
          .tensor(p.global_name)
          .note("a real run stops at the same point: without flat shards the parts have no ranges")
          .help("choose --strategy optim, optim_grads or optim_grads_params");
}

Rows FsdpLayout::rows_of(i32 parameter, const Cell& cell, ItemRange piece) const {
  const Seat& seat = seats_[static_cast<std::size_t>(parameter)];
  if (!sharded_ || seat.group < 0)
    return {0, piece.items() / parameters_[static_cast<std::size_t>(parameter)].shape().row_items()};
  const Group& group = groups_[static_cast<std::size_t>(seat.group)];
  return rows_on_shard(group.buffer, seat.member, place_in(group, grid_, cell).shard, piece);
}

std::vector<FsdpTensor> FsdpLayout::tensors(const Cell& cell) const {
  std::vector<FsdpTensor> out;
  for (i32 i = 0; i < static_cast<i32>(parameters_.size()); i++) {
    const ModelParameter& p = parameters_[static_cast<std::size_t>(i)];
    for (const Piece& piece : stored_pieces(p, model_))
      out.push_back(
          fsdp_tensor(parameters_, i, piece, rows_of(i, cell, items_of(piece, p.shape().row_items()))));
  }
  order_as_saved(parameters_, cell.ep, out);
  return out;
}

}  // namespace mckpt
