// Recut: the tensors of a sharded checkpoint as tensors of torch_dist. Chunks of the two sides that hold the
// same items are one group of the job:
//
//   the same rows on both sides     box to box          linear_qkv.weight, embeddings, parts of a gated delta net
//   other keys for the same rows    run to run          weight_w, weight_v  -->  weight; mixer.in_proj.weight  -->  .z
//
// States of the optimizer are copied as their parameters are. A run asks for fp32 copies of its parameters
// too, the main weights: where the source has none, they are made of its weights.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/dialects/torch_dist/plan.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/keys/key_table.h"
#include "convert/open/checkpoint.h"
#include "convert/plan/targets/torch_dist.h"
#include "core/base/int.h"
#include "core/base/notes.h"
#include "core/hybrid/pattern.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

class Store;

// The run of the options, without the set-up of its model. Throws what stacks_layers() throws, and
// kUsage for a spelling that changes no name.
TorchDistRun torch_dist_run(const ToMcoreOptions& options, const ModelMap& map);

// A sharded checkpoint as the source: construct, plan(), then job() once. It owns all that the job refers to,
// but for the source, which outlives it.
class Recut {
 public:
  // pre: the model has a table.
  Recut(const CheckpointModel& source, const ToMcoreOptions& options);

  // Throws kCounterpart for states of other shapes than their parameters.
  void plan();
  ChunkJob job();
  ProofInput proof() const;
  // How Megatron calls the way in which the states are stored; "": there are none.
  std::string state_form() const;

  const Store& source() const { return model_.store(); }
  const TorchDistRun& run() const { return run_; }
  const KeyTable& keys() const { return *keys_; }
  const TorchDistPlan& layout() const { return *plan_; }

  Notes notes;

 private:
  void type_as_source(std::vector<ModelParameter>& parameters) const;
  void match_tensors();
  void list_states();
  i32 kind_named(std::string_view kind);
  i32 kind_of_target(i32 layout_key) const;
  i32 group_of_source(i32 tensor) const;
  i32 groups_of_kind() const;
  bool is_box(i32 own_key) const;
  i32 group_of(i32 own_key, i32 kind) const;
  i32 parameter_group(const ModelParameter& p) const;

  const ToMcoreOptions options_;
  const CheckpointModel& model_;
  std::optional<LayerPattern> pattern_;  // run_ points to it
  TorchDistRun run_;
  std::unique_ptr<KeyTable> keys_;
  std::map<std::pair<i32, i64>, i32> parameter_of_;  // of keys_, by first tensor and expert
  std::vector<std::optional<DType>> types_;          // by parameter of keys_, as the source stores it
  std::vector<std::string> kinds_{""};               // of states; 0: weights
  std::vector<i32> kind_of_, key_of_;  // by tensor of the source, its kind and key of its table; -1: left out
  std::vector<i32> copies_;            // tensors of the source that repeat another one
  TorchDistStates states_;
  // The kind of the main weights that are made of the weights; "": the source has them
  std::string_view made_main_;
  std::unique_ptr<TorchDistPlan> plan_;
  std::unique_ptr<TorchDistChunks> chunks_;
  std::vector<i32> from_meaning_, to_meaning_;
  std::unique_ptr<ListedChunks> from_;
};

}  // namespace mckpt::impl
