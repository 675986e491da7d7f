// Cuts the packed parameters at the ranks' boundaries into boxes, in the order in which a rank saves them.
//
// The box of one key, worked out: linear_fc1.weight of width 8 and hidden size 2 over tp = 2, so 8 local rows
// (4 of gate, 4 of up); the rank's shard has local rows 3 to 5 of cell 1.
//
//   piece _w, local rows 0 to 3   rank has row 3         box offset 4 + 3 = 7, 1 row  of the global [8, 2]
//   piece _v, local rows 4 to 7   rank has rows 4 and 5  box offset 4 + 0 = 4, 2 rows of the global [8, 2]
#include "mappings/fsdp/layout.h"

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"
#include "mappings/model/parameter_marks.h"
#include "mappings/model/walk.h"

#include <algorithm>
#include <tuple>

namespace mckpt::impl {
namespace {

std::string disk_key(const ModelParameter& p, SavedKeys keys) {
  return cat(keys == SavedKeys::kStateDict ? "model." : "model.module.", p.global_name);
}

// In a real run each step of preparing the state removes keys from the dictionary and appends their
// replacements: gated parameters first, gated delta nets next, and, if expert numbers change, experts last.
void order_as_saved(const std::vector<ModelParameter>& parameters, i64 ep_rank,
                    std::vector<FsdpLayout::StoredKey>& keys) {
  auto of = [&](const FsdpLayout::StoredKey& k) -> const ModelParameter& { return parameters[k.parameter]; };
  auto put_last = [&](auto&& moves) {
    std::stable_partition(keys.begin(), keys.end(),
                          [&](const FsdpLayout::StoredKey& k) { return !moves(of(k)); });
  };
  put_last([](const ModelParameter& p) { return p.split == KeySplit::kSwiglu; });
  put_last([](const ModelParameter& p) {
    return p.split == KeySplit::kGdnInProj || p.split == KeySplit::kGdnConv;
  });
  if (ep_rank > 0) put_last([](const ModelParameter& p) { return p.expert(); });
}

std::string key_of(const ModelParameter& p, const Piece& piece, SavedKeys keys) {
  return p.split == KeySplit::kNone ? disk_key(p, keys) : piece_key(p.split, disk_key(p, keys), piece);
}

// The box of these rows of a piece in the global tensor of its key, and the items in the parameter's local
// order; the key is left empty.
FsdpTensor box_of(const ModelParameter& p, i32 index, const Piece& piece, Rows rows) {
  const Shape& local = p.shape();
  int dim = p.holding->partition_dim;
  const Part part = distinct_part(*p.holding, p.part);
  FsdpTensor t;
  t.parameter = index;
  t.sizes.assign(local.dims().begin(), local.dims().end());
  t.offsets.assign(t.sizes.size(), 0);
  std::vector<i64> global = t.sizes;
  if (local.rank() > 0) global[0] = piece.rows;
  if (dim > 0) t.offsets[dim] = part.index * local[dim];
  if (local.rank() > 0) {
    t.sizes[0] = rows.count;
    t.offsets[0] = rows.begin + (dim == 0 ? part.index * piece.rows : 0);
  }
  if (dim >= 0) global[dim] *= part.count;
  t.global = Shape(global);
  i64 row_items = local.row_items(), first = (piece.first_row + rows.begin) * row_items;
  t.items = {first, first + rows.count * row_items};
  return t;
}

}  // namespace

std::vector<Piece> stored_pieces(const ModelParameter& p, const ModelConfig& model) {
  if (p.split == KeySplit::kNone) return {{"", 0, p.shape().rank() > 0 ? p.shape()[0] : 1}};
  return pieces_of(p.split, model, global_shape(*p.holding, p.part.count), p.part);
}

FsdpTensor fsdp_tensor(const std::vector<ModelParameter>& parameters, i32 index, const Piece& piece,
                       Rows rows) {
  const ModelParameter& p = parameters[index];
  FsdpTensor t = box_of(p, index, piece, rows);
  t.key = key_of(p, piece, SavedKeys::kFsdpDtensor);
  return t;
}

void refuse_pipeline(const Grid& grid) {
  if (grid.pp > 1)
    throw Error(Code::kBadLayout, "Megatron-FSDP has no pipeline stages")
        .expected("`pp` 1")
        .found(grid.pp)
        .note(
            "with more stages, every stage numbers its layers from 0 and writes them under the same keys, so layers are lost");
}

namespace {

[[noreturn]] void refuse_v2(std::string what, auto expected, auto found, std::string why,
                            std::string_view help) {
  throw Error(Code::kBadLayout, std::move(what))
      .expected(expected)
      .found(found)
      .note(std::move(why))
      .help(cat(help, "; or choose `engine` v1"));
}

}  // namespace

void refuse_unlike_v2(const Grid& grid, const FsdpSetup& setup) {
  if (!setup.saves_state_dict()) return;
  constexpr const char* kData = "choose a grid of `dp`, `cp`, `ep` and `hsdp`";
  if (grid.pp > 1)
    refuse_v2("Megatron-FSDP v2 has no pipeline stages", "`pp` 1", grid.pp,
              "its meshes are of data-parallel ranks alone, and Megatron refuses pipeline stages with it",
              kData);
  for (auto [name, ranks, words] : {std::tuple("tp", grid.tp, "tensor parallelism"),
                                    std::tuple("etp", grid.etp, "expert-tensor parallelism")})
    if (ranks > 1 && setup.saved)
      refuse_v2(
          cat("Megatron-FSDP v2 cannot save a run with ", words), cat("`", name, "` 1"), ranks,
          "it knows the data-parallel ranks alone: every tensor-parallel rank saves its part under the same key, as if it were the whole parameter, and one part is kept; Megatron refuses such a run",
          kData);
  refuse_outer_shard(
      {.engine = setup.engine, .strategy = setup.strategy, .hsdp = grid.hsdp, .outer = grid.outer});
  if (setup.bucket_items > 0)
    refuse_v2("Megatron-FSDP v2 has no buckets that are cut by size", "`bucket_size` 0", setup.bucket_items,
              "it packs one buffer for each call of fully_shard, type, and trained or frozen",
              "leave out `bucket_size`");
}

// Where Megatron does not mark a parameter as split, Megatron-FSDP gives every tensor-parallel rank the
// values of the first, and saves only the first rank's values.
void refuse_lost_parts(const std::vector<ModelParameter>& parameters) {
  for (const ModelParameter& p : parameters) {
    if (p.part.count == 1 || !(is_split_norm(p) || p.row->first_cells)) continue;
    const char* what = is_split_norm(p) ? "norm" : "tensor";
    throw Error(Code::kBadLayout,
                cat("Megatron-FSDP cannot hold ", is_split_norm(p) ? "norms" : "attention sinks",
                    " that are split over tensor-parallel ranks"))
        .tensor(p.global_name)
        .expected("`tp` 1")
        .found(p.part.count)
        .note(cat("a real run saves the part of the first rank as if it were the whole ", what,
                  ", and the other parts are lost"))
        .help("choose `tp` 1; experts may be split by `ep`");
  }
}

// Megatron-FSDP counts grouped experts over all ranks, and leaves those that are modules of their own under
// the numbers of their rank.
void refuse_lost_experts(const std::vector<ModelParameter>& parameters, const Grid& grid) {
  for (const ModelParameter& p : parameters)
    if (grid.ep > 1 && p.row->local_expert())
      throw Error(Code::kBadLayout,
                  "Megatron-FSDP cannot hold experts that are modules of their own on several ranks")
          .tensor(p.global_name)
          .expected("`ep` 1")
          .found(grid.ep)
          .note(
              "a real run saves the experts of every rank under the same numbers, so that all but one rank's are lost")
          .help("choose `ep` 1");
}

FsdpLayout::FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model,
                       const Grid& grid, const FsdpSetup& setup)
    : FsdpLayout(parameters, model, grid, pack_groups(parameters, members_of(parameters, setup), grid, setup),
                 setup.strategy != Strategy::kNoShard, setup.keys) {
  refuse_unlike_v2(grid, setup);
  refuse_lost_parts(parameters);
  refuse_lost_experts(parameters, grid);
  if (setup.saved) refuse_unsavable();
}

FsdpLayout::FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model,
                       const Grid& grid, std::vector<FsdpGroup> groups, bool sharded, SavedKeys keys)
    : parameters_(parameters),
      model_(model),
      grid_(grid),
      sharded_(sharded),
      saved_keys_(keys),
      groups_(std::move(groups)) {
  refuse_pipeline(grid);
  seats_.resize(parameters_.size());
  for (i64 g = 0; g < std::ssize(groups_); g++) {
    const std::vector<i64>& members = groups_[g].bucket.members;
    for (i64 m = 0; m < std::ssize(members); m++) seats_[members[m]] = {g, m};
  }
  for (std::size_t p = 0; p < parameters_.size(); p++)
    if (i32 first = parameters_[p].tied_to; first >= 0) seats_[p] = seats_[first];
}

void FsdpLayout::refuse_unsavable() const {
  if (sharded_) return;
  for (const ModelParameter& p : parameters_)
    if (p.split != KeySplit::kNone)
      throw Error(Code::kBadLayout,
                  "a model with parameters that are stored in parts cannot be saved under no_shard")
          .tensor(p.global_name)
          .note("a real training run stops at the same point: without flat shards the parts have no ranges")
          .help("choose `strategy` optim, optim_grads or optim_grads_params");
}

Rows FsdpLayout::rows_of(i32 parameter, const Cell& cell, ItemRange piece) const {
  const Seat& seat = seats_[parameter];
  if (!sharded_ || seat.group < 0) return {0, piece.items() / parameters_[parameter].shape().row_items()};
  const Group& group = groups_[seat.group];
  return rows_on_shard(group.buffer, seat.member, place_in(group, grid_, cell).shard, piece);
}

std::vector<FsdpLayout::StoredKey> FsdpLayout::keys(i64 ep_rank) const {
  std::vector<StoredKey> out;
  for (i32 i = 0; i < static_cast<i32>(parameters_.size()); i++)
    for (Piece& piece : stored_pieces(parameters_[i], model_)) out.push_back({i, std::move(piece)});
  if (saved_keys_ == SavedKeys::kFsdpDtensor) order_as_saved(parameters_, ep_rank, out);
  return out;
}

std::string FsdpLayout::name(const StoredKey& key) const {
  return key_of(parameters_[key.parameter], key.piece, saved_keys_);
}

std::optional<ItemRange> FsdpLayout::shards_of(const StoredKey& key) const {
  const Seat& seat = seats_[key.parameter];
  if (!sharded_ || seat.group < 0) return std::nullopt;
  const FlatBuffer& buffer = groups_[seat.group].buffer;
  const PackedParameter& packed = buffer.parameters[seat.member];
  ItemRange items = items_of(key.piece, packed.row_items);
  if (items.empty()) return ItemRange{};
  return ItemRange{(packed.offset + items.begin) / buffer.shard_items,
                   (packed.offset + items.end - 1) / buffer.shard_items + 1};
}

FsdpTensor FsdpLayout::share(const StoredKey& key, const Cell& cell) const {
  const ModelParameter& p = parameters_[key.parameter];
  return box_of(p, key.parameter, key.piece,
                rows_of(key.parameter, cell, items_of(key.piece, p.shape().row_items())));
}

std::vector<FsdpTensor> FsdpLayout::tensors(const Cell& cell) const {
  std::vector<FsdpTensor> out;
  for (const StoredKey& key : keys(cell.ep)) {
    out.push_back(share(key, cell));
    out.back().key = name(key);
  }
  return out;
}

}  // namespace mckpt::impl
