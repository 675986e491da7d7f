// The parts of a model that the ranks of a Megatron-FSDP run hold, under the keys of fsdp_dtensor:
//
//   parameters of one cell --group, pack--> flat buffers --cut at rank r--> rows of every parameter
//   rows of a fused parameter --pieces--> ..._w, ..._v, .query, ...   each with its box in the global tensor
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mappings/fsdp/groups.h"
#include "mappings/rule.h"

namespace mckpt::impl {

enum class SavedKeys : u8;
struct Cell;
struct FsdpSetup;
struct Grid;
struct ModelConfig;
struct ModelParameter;

// The part of one key that one rank holds.
struct FsdpTensor {
  std::string key;    // "model.module.decoder.layers.0.mlp.linear_fc1.weight_w"
  i32 parameter = 0;  // index into the parameters
  Shape global;
  std::vector<i64> offsets, sizes;  // the box; sizes[0] is 0 if the rank holds nothing
  ItemRange items;                  // the items of the box in the parameter's local order

  bool empty() const { return items.empty(); }
};

// The pieces in which a parameter is stored: the pieces of its split, or one piece that is all of it. Throws
// what pieces_of() throws.
std::vector<Piece> stored_pieces(const ModelParameter& parameter, const ModelConfig& model);

// Rows of a piece of parameters[index], counted from the piece's first row.
FsdpTensor fsdp_tensor(const std::vector<ModelParameter>& parameters, i32 index, const Piece& piece,
                       Rows rows);

// Throws kBadLayout for a grid with pipeline stages.
void refuse_pipeline(const Grid& grid);
// Throws kBadLayout if the setup saves as Megatron-FSDP v2 does and v2 refuses such a grid or strategy, or
// would lose values. Tensor-parallel ranks can hold parameters that they cannot save (FsdpSetup::saved).
void refuse_unlike_v2(const Grid& grid, const FsdpSetup& setup);
// Throws kBadLayout if a norm is split over several tensor-parallel ranks.
void refuse_lost_parts(const std::vector<ModelParameter>& parameters);
// Throws kBadLayout for experts that Megatron-FSDP saves under the same numbers on every rank.
void refuse_lost_experts(const std::vector<ModelParameter>& parameters, const Grid& grid);

// The keys and boxes of every rank that shares one cell. Costs: packing once for all ranks, then one step a
// key and rank.
class FsdpLayout {
 public:
  using Group = FsdpGroup;

  // pre: the parameters belong to one cell of the grid, and outlive this object. Throws kBadLayout for a
  // strategy that cannot save such a model, a grid with pipeline stages or one that v2 does not have;
  // kRowUnaligned if the range of any rank cuts a row.
  FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model, const Grid& grid,
             const FsdpSetup& setup);
  // A layout of groups that were packed before.
  FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model, const Grid& grid,
             std::vector<FsdpGroup> groups, bool sharded, SavedKeys keys);

  // One key of the cell, with the ranks that hold a part of it.
  struct StoredKey {
    i32 parameter = 0;
    Piece piece;
  };
  // All keys, in the order in which a rank passes its tensors to the checkpoint writer.
  std::vector<StoredKey> keys(i64 ep_rank) const;
  std::string name(const StoredKey& key) const;
  // The shards of its buffer that hold a part of it; nothing: every rank has all of it.
  std::optional<ItemRange> shards_of(const StoredKey& key) const;
  // The part of the rank, without the name. pre: as for tensors().
  FsdpTensor share(const StoredKey& key, const Cell& cell) const;

  // The tensors of a rank of that cell, in the order in which it passes them to the checkpoint writer. pre:
  // `cell` differs from the parameters' cell in its data-parallel coordinates only.
  std::vector<FsdpTensor> tensors(const Cell& cell) const;

  const std::vector<Group>& groups() const { return groups_; }

 private:
  struct Seat {
    i64 group = -1, member = 0;
  };

  void refuse_unsavable() const;
  Rows rows_of(i32 parameter, const Cell& cell, ItemRange piece) const;

  const std::vector<ModelParameter>& parameters_;
  const ModelConfig& model_;
  const Grid& grid_;
  bool sharded_;
  SavedKeys saved_keys_;
  std::vector<Group> groups_;
  // The group and member of every parameter; group -1 for buffers. A second name has the seat of the first.
  std::vector<Seat> seats_;
};

}  // namespace mckpt::impl
