// How a path is opened where its files leave something open.
//
//   which model it is             assets, any_model, model
//   which names its tensors get   names
//   what is read of it            states, copies
//   which ranks wrote it          source_tp, source_etp
//   what may be wrong with it     accept, records_apart
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "core/hybrid/spellings.h"
#include "hf/model_options.h"
#include "io/dcp/check/check.h"

namespace mckpt::impl {

// The names that tensors of a sharded checkpoint get. They become the names of fsdp_dtensor where a table of
// Megatron has to be laid over them; the rest follows from the result of the checkpoint.
enum class KeyNames : u8 {
  kOfModel,   // layers as the model has them; names of FSDP2 and of Megatron-FSDP alone stay
  kOfFsdp,    // names of FSDP2 too; layers of another form keep their names, without a table
  kWhole,     // likewise, with fused parameters whole and the groups of the optimizer as they are
  kUsual,     // as kOfFsdp, but layers of another form as in the model; usual names, except in torch_dist
  kToCompare  // layers as the model has them, and usual names everywhere
};
inline bool keeps_groups(KeyNames names) {
  return names != KeyNames::kOfModel && names != KeyNames::kToCompare;
}
inline bool keeps_layers(KeyNames names) { return names == KeyNames::kOfFsdp || names == KeyNames::kWhole; }
inline bool makes_whole(KeyNames names) { return names == KeyNames::kWhole; }

// The states of the optimizer.
enum class StateUse : u8 {
  kLeft,        // are not read, and need not be sound
  kRead,        // each must be of a parameter: others are refused
  kAsStored,    // are read; states of no parameter keep their names on disk
  kLeftOfRanks  // need to be sound, and are not read of files of ranks; of torch_dist as stored
};

// Tensors that several ranks have alike, in files of ranks.
enum class CopyUse : u8 {
  kIgnore,
  kCompare,  // by their sums, where files have some
  kRead      // byte by byte, also where sums are equal
};

// Plain values. A default object opens a checkpoint that mckpt wrote.
struct CheckpointOptions {
  // The folder of the original model, or one with its config.json. Without it the checkpoint must have the
  // assets that mckpt put beside it.
  std::optional<std::string> assets{};
  bool any_model = false;  // take a model that no table knows
  KeyNames names = KeyNames::kOfModel;
  // The spelling that the names of a known model get, whichever they have on disk; none: as `names` says.
  std::optional<Spelling> spelling{};
  StateUse states = StateUse::kLeft;
  CopyUse copies = CopyUse::kCompare;
  // Tensor-parallel and expert-tensor-parallel ranks that wrote the checkpoint, if the checkpoint does not
  // say it.
  std::optional<i64> source_tp{}, source_etp{};
  const char *tp_setting = "source_tp", *etp_setting = "source_etp";  // the caller's names of these two
  std::vector<Code> accept{};                                         // codes of damage that is accepted
  bool records_apart = false;  // problems of single records are not damage: the caller reports them
  HfModelOptions model{};

  bool weights_only() const { return states == StateUse::kLeft; }
  CheckedPart parts() const { return weights_only() ? CheckedPart::kModel : CheckedPart::kAll; }
};

// The parts of a checkpoint that are read to reshard it.
struct ReshardSourceOptions {
  CheckpointOptions checkpoint{};            // opening_of() sets names and states
  bool weights_only = false;                 // leave the states of the optimizer out
  bool keep_names = false;                   // of a model that no table knows: every tensor keeps its name
  std::optional<std::string> rank_states{};  // the folder of the ranks' files
  std::optional<i64> source_ep = {}, source_hsdp = {};  // of the run that wrote them, if SRC does not say it
};
// Throws kUsage for options that exclude each other, with the reason. Opens nothing.
void refuse_contradictions(const ReshardSourceOptions& options);

}  // namespace mckpt::impl
