// Resharding: a checkpoint whose keys are found again in a key table of the same model for the new grid:
//
//   tensors of the model section   chunks of the new FsdpPlan, cut from the source's boxes
//   states of the optimizer        companions of their keys: cut as the keys are
//   all other tensors              copied whole, by the last rank
//
// Where fused tensors are stored cell by cell and the number of cells changes, the job takes the way over the
// model's own items (FusedTables); all other tensors are box to box. Rows of the vocabulary beyond the
// source's rows are zeros (vocab_change.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/dialects/fsdp/plan.h"
#include "convert/dialects/fsdp/run.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/keys/key_table.h"
#include "convert/open/checkpoint.h"
#include "convert/plan/reshard/reshard.h"
#include "convert/plan/reshard/reshard_source.h"
#include "core/base/name_hash.h"
#include "core/base/notes.h"
#include "core/hybrid/pattern.h"
#include "hf/folder/listed_parameters.h"

namespace mckpt::impl {

struct StateName;

// The source, the target's key table and the lookups of the planning steps. A part of the target.
class Resharding {
 public:
  Resharding(const CheckpointModel& checkpoint, const ReshardOptions& options);

  void match_states();
  void carry_tensors(DcpLayout& layout) const;
  void store_as_source(std::vector<ModelParameter>& parameters) const;
  std::vector<i32> source_of(const DcpLayout& layout) const;
  FusedTables fused_tensors(const FsdpPlan& plan, std::span<const i32> source) const;
  std::string_view rule_of(const FusedTables& fused, i64 tensor) const;
  std::vector<bool> resized_tensors(const FsdpPlan& plan, std::span<const i32> source) const;
  ProofInput proof(const DcpLayout& layout) const;
  ProofInput::LeftOut left_out(i64 tensor) const;

  const ReshardSource& from() const { return source_; }
  const Store& source() const { return source_.store(); }
  const CheckpointModel& model() const { return source_.model(); }
  const KeyTable& target_keys() const { return *target_keys_; }
  // The shape that the source has for a key of the target: other rows, if the rows of the vocabulary change.
  const Shape& stored_shape(i32 key) const {
    const CheckpointKey& target = target_keys()[key];
    i32 own = model().keys().find(target.name);
    return own < 0 ? target.shape : model().keys()[own].shape;
  }
  const FsdpRun& run() const { return run_; }
  // Null: the args keep what they say of layers.
  const LayerPattern* pattern() const { return pattern_ ? &*pattern_ : nullptr; }
  const Companions& states() const { return states_; }
  bool v2() const { return options_.fsdp.saves_state_dict(); }

  Notes notes;

 private:
  void set_up_run();
  DcpName name_of_state(const StateName& state, std::string_view stored) const;
  std::optional<DType> type_of(std::string_view key) const;
  bool has_no_place(i32 tensor) const;

  const ReshardOptions options_;
  ReshardSource source_;
  std::unique_ptr<KeyTable> target_keys_;  // of fused tensors as the new grid stores them
  std::optional<LayerPattern> pattern_;
  FsdpRun run_;  // points to the pattern
  Companions states_;
  std::vector<i32> whole_;               // tensors that are carried as they are
  NameMap<std::string, i32> tensor_of_;  // by bare_name()
  std::optional<ListedParameters> listed_;
};

}  // namespace mckpt::impl
