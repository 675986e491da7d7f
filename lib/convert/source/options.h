// Options of open_checkpoint(): how a checkpoint is opened if its files leave something open.
//
//   which model it is             assets, any_model, model
//   which names it has            keep_layers, renamed, usual_names
//   which ranks wrote it          source_tp, source_etp
//   what may be wrong with it     accept, records_apart, parts, read_copies
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "hf/model_options.h"
#include "io/dcp/check/check.h"

namespace mckpt::impl {

// Plain values. A default object opens a checkpoint that mckpt wrote.
struct CheckpointOptions {
  // The folder of the original model, or one with its config.json. Without it the checkpoint must have the
  // assets that mckpt put beside it.
  std::optional<std::string> assets{};
  bool any_model = false;  // take a model that no table knows
  // Layers keep their names: a checkpoint whose layers have other names than those of the model is taken as
  // one of a model that no table knows.
  bool keep_layers = false;
  bool renamed = false;  // checkpoints of FSDP2 and of Megatron-FSDP alone get the names of fsdp_dtensor
  bool whole = false;    // with `renamed`: fused parameters are made whole, groups of the optimizer are kept
  bool usual_names = false;  // parameters with other names get their usual ones
  // Of files of ranks: what several ranks have alike is compared byte by byte, also where checksums are
  // equal.
  bool read_copies = false;
  bool compare_copies = true;  // of files of ranks: what several ranks have alike is compared
  bool leave_states = false;  // of files of ranks: states of the optimizer are not read
  // Tensor-parallel and expert-tensor-parallel ranks that wrote the checkpoint, if the checkpoint does not
  // say it.
  std::optional<i64> source_tp{}, source_etp{};
  const char *tp_setting = "source_tp", *etp_setting = "source_etp";  // the caller's names of these two
  std::vector<Code> accept{};                                         // codes of damage that is accepted
  bool records_apart = false;       // problems of single records are not damage: the caller reports them
  CheckedPart parts = CheckedPart::kModel;  // the parts of the checkpoint that have to be sound
  HfModelOptions model{};

  bool weights_only() const { return parts == CheckedPart::kModel; }
};

// What is read to reshard a checkpoint.
struct ReshardSourceOptions {
  CheckpointOptions checkpoint{};            // parts, renamed and keep_layers are set by the functions below
  bool weights_only = false;                 // leave the states of the optimizer out
  bool keep_names = false;                   // of a model that no table knows: every tensor keeps its name
  std::optional<std::string> rank_states{};  // the folder of the ranks' files
  std::optional<i64> source_ep = {}, source_hsdp = {};  // of the run that wrote them, if SRC does not say it
};
// Throws kUsage for options that exclude each other, with the reason. Opens nothing.
void refuse_contradictions(const ReshardSourceOptions& options);

}  // namespace mckpt::impl
