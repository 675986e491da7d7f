// A model into the torch_dist checkpoint that a Megatron run of a grid would have saved: the format that
// Megatron-LM, Megatron-Bridge and what is built on them train from.
//
//   Hugging Face folder                      -->  DST/release/.metadata, __0_0.distcp, ...  the tensors
//   fsdp_dtensor, FSDP2, another torch_dist       DST/release/common.pt            args, iteration, groups
//                                                 DST/release/metadata.json        the format's mark
//
// Keys, shapes and boxes are the run's. Its files differ in what
// convert/dialects/torch_dist/plan.h says: ranks that hold the same box do not share the work of
// writing.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "convert/dialects/torch_dist/plan.h"
#include "convert/keys/value_options.h"
#include "convert/open/options.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/spellings.h"
#include "hf/model_options.h"

namespace mckpt::impl {

class ModelMap;
class Notes;
class Store;
struct Conversion;
struct LayerPattern;
struct Opened;

// Plain values. Every rank plans with the same ones, except `rank`.
struct ToMcoreOptions {
  std::string source, target;
  CheckpointOptions checkpoint{};  // how a sharded checkpoint is opened; `model` also a Hugging Face folder
  std::string model_dict{};        // as in OwnModelOptions
  bool weights_only = false;       // leave the states of the optimizer out
  Grid grid{};
  PipelineOptions pipeline{};
  LayerStacks layers = LayerStacks::kAuto;
  // The pattern of a hybrid run with its layers in groups, "[*-]M". "": a model has no groups, and a
  // checkpoint keeps its pattern, with the pipes of the new stages; a given one has other pipes, and nothing
  // else.
  std::string hybrid_pattern{};
  // The spelling of norms, as a run with Megatron's own modules saves them. None: the usual one, and a
  // torch_dist keeps its own.
  std::optional<Spelling> spelling{};
  ValueOptions values{};
  std::optional<i64> iteration{};  // none: of the folder; with states, of the objects; or release
  int threads = 1;
  int rank = 0;  // of this process; rank 0 alone compares data that should be equal
};

// The pattern of a result that is made of a model, and the run that saves it. Throw what result_pattern() and
// torch_dist_run() throw, and kUsage for groups in stacked layers. The pattern outlives the run.
std::optional<LayerPattern> torch_dist_pattern(const ToMcoreOptions& options, const ModelMap& map,
                                               Notes& notes);
TorchDistRun torch_dist_run(const ToMcoreOptions& options, const ModelMap& map,
                            const std::optional<LayerPattern>& pattern);

// Throws what open_hf_model(), open_sharded(), TorchDistPlan, import_job() and keyed_job() throw; kNotFound
// for a model without weights; kUnknownFormat where the layers of the source have other names; kBadPattern
// for groups that are not of the model, or whose layers would have the same names; kNotHeld for states of the
// optimizer for which torch_dist has no place, or whose groups are not known; kUsage for a spelling without
// effect.
Conversion plan_to_mcore(const ToMcoreOptions& options);
// The same, of a store or a source that is open.
Conversion plan_to_mcore(std::unique_ptr<Store> source, const ToMcoreOptions& options);
Conversion plan_to_mcore(Opened source, const ToMcoreOptions& options);

}  // namespace mckpt::impl
