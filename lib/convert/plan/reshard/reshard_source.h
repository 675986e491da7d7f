// The source of a resharding: the checkpoint, and optimizer states that the ranks of its training run may
// have saved in files of their own:
//
//   ckpt/iter_0000010/.metadata, __0_0.distcp, ...     model()
//   states/optim_rank_0.pt, optim_rank_1.pt, ...       rank_states()
//                                                      store(): the tensors of both
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/open/checkpoint.h"
#include "convert/open/options.h"
#include "convert/plan/source_identity.h"
#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/copy/side_files.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/paths.h"

namespace mckpt::impl {

class JoinedStore;
class RankStates;
class Store;

// Whether the checkpoint is of a model that no table knows, and is resharded tensor by tensor: its names
// follow no convention, or are to be kept.
bool is_plain_source(const Store& store, const ReshardSourceOptions& options);
// The parts that have to be sound.
CheckedPart parts_of(const ReshardSourceOptions& options);
// How any other checkpoint is opened.
CheckpointOptions opening_of(const ReshardSourceOptions& options);

// An open source of a resharding. Use: construct, then join_rank_states() once; after that, const functions
// are thread-safe. The object owns the files of the ranks.
class ReshardSource {
 public:
  // The checkpoint was opened with opening_of(), and outlives this. Throws kNotHeld for states of the
  // optimizer in files of ranks, unless only the weights are wanted.
  ReshardSource(const CheckpointModel& checkpoint, const ReshardSourceOptions& options);
  ~ReshardSource();

  // Opens the ranks' files, if the options name them, and joins them with the checkpoint. `adjust` sets
  // whether parameters are whole or in parts in the result. Throws what RankStates throws;
  // kUnknownAssets for a model without tables.
  void join_rank_states(const Adjust& adjust);
  // Throws kUnknownPartition for a model without tables, unless one tensor-parallel rank wrote it or nothing
  // in it can be stored rank after rank. Only the tables contain the order of such tensors on one rank.
  void refuse_ranks_of_unknown_model() const;

  const CheckpointModel& model() const { return model_; }
  const Store& store() const;
  // Null: the checkpoint alone is read.
  const RankStates* rank_states() const { return states_.get(); }
  bool weights_only() const { return options_.weights_only; }
  // The spelling that the names were given; none: they have their own.
  const std::optional<Spelling>& spelling() const { return options_.checkpoint.spelling; }
  // True if no table knows the model, or its table has other names, whether the user asked for `any_model` or
  // not.
  bool any_model() const;
  bool asked_for_any_model() const { return options_.checkpoint.any_model; }
  // True for the key of a tensor of a model without tables that cannot be sharded, but is copied.
  bool is_carried(const std::string& key) const {
    return any_model() && model_.keys().find(key) < 0 && model_.tensor_of_key(key) >= 0;
  }
  // The name of an item that is copied as it is, with its place in the nested dict that was saved.
  DcpName named(const std::string& item) const;
  // The place of an item in the dict that was saved; items that it does not have are at the end.
  i64 place_of(std::string_view item) const;
  // True for optimizer states that are left out, or that the ranks' files have.
  bool drops_tensor(i32 tensor) const;
  // Whether the result has states of the optimizer under the names of fsdp_dtensor.
  bool has_states() const;
  // The facts of the checkpoint and of the ranks' files, whose groups go with their states.
  RunFacts facts() const;
  // The assets that the result gets. Those that mckpt put beside a checkpoint are copied even if the model is
  // treated as unknown.
  SideFiles assets() const;
  // The facts that decide, beside the layout of the result, which byte goes where.
  SourceIdentity identity() const;

 private:
  ReshardSourceOptions options_;
  const CheckpointModel& model_;
  std::optional<DcpPaths> paths_;     // of a model without tables, or if its groups are kept
  NameMap<std::string, i64> places_;  // of these, in their order
  std::unique_ptr<RankStates> states_;
  std::unique_ptr<JoinedStore> joined_;
};

}  // namespace mckpt::impl
