// What `convert reshard` reads: a checkpoint, and states that the ranks of its run kept in files of their
// own.
#pragma once

#include "convert/views/rank_states.h"
#include "io/dcp/paths.h"
#include "io/store/joined_store.h"
#include "tools/checkpoint_model.h"

namespace mckpt {

class ReshardSource {
 public:
  void declare(CommandLine& line);
  // Throws kUsage for flags that exclude each other. Called when the line is parsed.
  void check();
  // Throws what CheckpointModel::open() throws. `adjust` says which parameters have which form; it is called
  // when the model is known.
  void open(const std::string& path, const GlobalFlags& flags);
  // Of --any-model, the checkpoint where its keys follow no convention, or are to be kept: open() is of all
  // others. Null else.
  std::unique_ptr<Store> open_plain(const std::string& path, const GlobalFlags& flags);
  void open_rank_states(const Adjust& adjust, const GlobalFlags& flags);
  // Of a model without tables: throws kUnknownPartition unless one tensor-parallel rank wrote it, or nothing
  // in it can be stored rank after rank. Only the tables tell in which order such tensors are on one rank.
  void refuse_ranks_of_unknown_model() const;

  const CheckpointModel& model() const { return model_; }
  // The tensors of both.
  const Store& store() const { return joined_ ? static_cast<const Store&>(*joined_) : model_.store(); }
  // Null: the checkpoint alone is read.
  const RankStates* rank_states() const { return states_.get(); }
  bool weights_only() const { return weights_only_; }
  // The model is one that no table knows, or whose table has other names: the user need not have said so.
  bool any_model() const { return model_.model().plain != nullptr; }
  bool said_any_model() const { return flags_.any_model; }
  // Whether the key is a tensor of a model without tables that cannot be sharded, but copied.
  bool is_carried(const std::string& key) const {
    return any_model() && model_.keys().find(key) < 0 && model_.tensor_of_key(key) >= 0;
  }
  // The name of an item that is copied as it is, with its place in the nested dict that was saved.
  DcpName named(const std::string& item) const;
  // States that the user does not want, or has others for.
  bool left_behind(i32 tensor) const;
  bool is_left_behind(std::string_view object) const {
    return weights_only_ && object.starts_with("optimizer.");
  }
  std::vector<std::string> roots() const;
  // What decides, beside the layout of the result, which byte goes where.
  std::string identity() const;

 private:
  CheckpointModelFlags flags_;
  bool weights_only_ = false, keep_names_ = false;
  std::optional<DcpPaths> paths_;      // of a model without tables
  std::optional<std::string> folder_;  // of the ranks' files
  std::optional<i64> source_ep_, source_hsdp_;
  CheckpointModel model_;
  std::unique_ptr<RankStates> states_;
  std::unique_ptr<JoinedStore> joined_;
};

}  // namespace mckpt
