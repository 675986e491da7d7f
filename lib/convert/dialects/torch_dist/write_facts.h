// The facts of a run as the common state of a torch_dist checkpoint, the file common.pt: what every rank of a
// run has, as one dict.
//
//   {"args": Namespace(...), "checkpoint_version": 3.0, "iteration": 10,
//    "optimizer": {"optimizer": {"param_groups": [{lr, ...}, ...]}, "param_state_sharding_type": ...},
//    "opt_param_scheduler": {...}, "num_floating_point_operations_so_far": 0,     what the run has of these
//    "content_metadata": {"non_homogeneous_layers": False, ...}}
//
// The optimizer of a run has one group for all parameters with equal options. With expert parallelism a run
// has an optimizer of its own for experts, so that the common state has two.
//
// Newer versions of Megatron (0.19) save the same dict as an object, common_state/shard_0_1; they read the
// file first, and older versions (0.16) read nothing else.
#pragma once

#include <optional>
#include <string>

#include "convert/dialects/torch_dist/plan.h"
#include "convert/facts/megatron_args.h"
#include "convert/facts/run_facts.h"
#include "core/base/int.h"

namespace mckpt::impl {

class KeyTable;

// The result, as far as the writer needs it beside the facts. All references outlive the struct.
struct TorchDistResult {
  const TorchDistRun& run;
  const KeyTable& keys;
  MegatronArgs made;               // where the source has no args; their iteration follows from the facts
  i64 source_rows = 0;             // of the vocabulary in the source
  std::optional<i64> iteration{};  // none: the facts' iteration, or 0
  std::string state_form{};        // "fully_sharded_model_space"; "": without states of the optimizer

  bool has_states() const { return !state_form.empty(); }
};

// The file common.pt. Facts without a place are counted and told in `out`. Throws kNotHeld if the result has
// states, and the facts do not say the options of each parameter.
std::string common_file(const RunFacts& facts, const TorchDistResult& result, WrittenFacts& out);
// The file metadata.json, which marks a complete torch_dist checkpoint.
std::string torch_dist_mark();

// The args of a run that saves torch_dist, as far as the model gives them.
MegatronArgs torch_dist_args(const ModelMap& map, const RunEntries& entries, const TorchDistRun& run,
                             const std::string& state_form);

}  // namespace mckpt::impl
