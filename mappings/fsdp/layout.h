// What the ranks of a Megatron-FSDP run hold of a model, under the keys of an fsdp_dtensor checkpoint:
//
//   parameters of one cell --group, pack--> flat buffers --cut at rank r--> rows of every parameter
//   rows of a fused parameter --pieces--> ..._w, ..._v, .query, ...   each with its box in the global tensor
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mappings/fsdp/groups.h"

namespace mckpt {

// One key as one rank has it.
struct FsdpTensor {
  std::string key;    // "model.module.decoder.layers.0.mlp.linear_fc1.weight_w"
  i32 parameter = 0;  // index into the parameters
  Shape global;
  std::vector<i64> offsets, sizes;  // the box; sizes[0] is 0 where the rank holds nothing
  ItemRange items;                  // of the parameter's local order: what lies in the box

  bool empty() const { return items.empty(); }
};

// The pieces in which a parameter is stored: those of its split, or all of it as one. Throws what pieces_of()
// throws.
std::vector<Piece> stored_pieces(const ModelParameter& parameter, const ModelConfig& model);

// Rows of a piece of parameters[index], counted from the piece's first row.
FsdpTensor fsdp_tensor(const std::vector<ModelParameter>& parameters, i32 index, const Piece& piece,
                       Rows rows);

// Throws kBadLayout for a grid with pipeline stages.
void refuse_pipeline(const Grid& grid);

class FsdpLayout {
 public:
  using Group = FsdpGroup;

  // pre: the parameters are those of one cell of the grid, and outlive this. Throws kBadLayout for a strategy
  // that cannot save such a model or a grid with pipeline stages, kRowUnaligned where any rank's range cuts a
  // row.
  FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model, const Grid& grid,
             const FsdpSetup& setup);
  // The same with groups that were packed before.
  FsdpLayout(const std::vector<ModelParameter>& parameters, const ModelConfig& model, const Grid& grid,
             std::vector<FsdpGroup> groups, bool sharded);

  // One key of the cell, whichever ranks hold anything of it.
  struct StoredKey {
    i32 parameter = 0;
    Piece piece;
  };
  // In the order in which a rank hands its tensors to the checkpoint writer.
  std::vector<StoredKey> keys(i64 ep_rank) const;
  std::string name(const StoredKey& key) const;
  // The shards of its buffer that hold anything of it; nothing: every rank has all of it.
  std::optional<ItemRange> shards_of(const StoredKey& key) const;
  // The rank's share, without the name. pre: as for tensors().
  FsdpTensor share(const StoredKey& key, const Cell& cell) const;

  // What a rank of that cell holds, in the order in which it hands the tensors to the checkpoint writer.
  // pre: `cell` differs from the parameters' in its data-parallel places only.
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
  std::vector<Group> groups_;
  std::vector<Seat> seats_;  // where a parameter lies; group -1 for buffers
};

}  // namespace mckpt
