// A model into the fsdp_dtensor checkpoint that a Megatron-FSDP run of a grid would have saved. The model is
// a Hugging Face folder, or a checkpoint with the model's own names (FSDP2, accelerate, verl, torchtitan,
// DeepSpeed).
//
//   model.layers.0.self_attn.q_proj.weight ...   -->   DST/release/__0_0.distcp, __1_0.distcp, .metadata
//
// The result is a function of the model, the grid and the options: names, boxes, files, and the order in the
// files are those that the run would have written. A run of Megatron-FSDP v2 saves a plain state dict
// (FsdpSetup::keys): "model.<param>", every parameter whole and fp32, and no objects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/keys/name_rules.h"
#include "convert/keys/value_options.h"
#include "core/base/error_code.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/spellings.h"
#include "hf/model_options.h"
#include "mappings/fsdp/setup.h"

namespace mckpt::impl {

class ModelMap;
struct Conversion;
struct Opened;
struct FsdpRun;
struct LayerPattern;

// Plain values. Every rank of a parallel conversion plans with the same options, except `rank`.
struct HfToFsdpOptions {
  std::string source, target;
  // For a checkpoint with the model's own names: a folder with config.json, and codes of damage that is
  // accepted.
  std::optional<std::string> assets{};
  std::vector<Code> accept{};
  std::string model_dict{};  // as in OwnModelOptions
  HfModelOptions model{};
  Grid grid{};
  FsdpSetup fsdp{};
  FrozenNames frozen{};
  Spelling spelling{};  // the names of parameters that have more than one
  ValueOptions values{};
  std::string hybrid_pattern{};    // of a hybrid run with its layers in groups: "[*-]M"; "": no groups
  std::optional<i64> iteration{};  // none: DST/release
  int threads = 1;
  int rank = 0;  // of this process; rank 0 alone compares the data of tensors that repeat another
};

// The training run that the options describe. `groups`: the parsed hybrid_pattern, or null; it outlives the
// run. Throws kUsage for a spelling without effect.
FsdpRun fsdp_run(const HfToFsdpOptions& options, const ModelMap& map, const LayerPattern* groups);

// Reads headers, and on rank 0 the data of tensors that should repeat another one. Throws what open(),
// KeyTable, FsdpPlan and import_job() throw; kUnaccounted if a tensor that should repeat another one has
// values of its own; kUsage for a spelling without effect and for types that the engine does not store;
// kBadPattern for a pattern that is not valid, or not the model's.
Conversion plan_hf_to_fsdp(const HfToFsdpOptions& options);
// The same, of a model that is open with its table.
Conversion plan_hf_to_fsdp(Opened source, const HfToFsdpOptions& options);

}  // namespace mckpt::impl
