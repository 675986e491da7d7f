// RankShare: what one rank of a training run holds of a Hugging Face model, found by arithmetic: its tensors
// in the form that is asked for, with their boxes, types, digests and attributes.
//
//   at run time   decoder.layers.0.mlp.linear_fc1.weight                  [128, 32]  all
//   wrapped       decoder.layers.0.mlp.linear_fc1.weight                  [128, 32]  [40, 32] at [24, 0]
//   saved         model.module.decoder.layers.0.mlp.linear_fc1.weight_w   [64, 32]   [40, 32] at [24, 0]
//
// Wrapped and saved are of a run under Megatron-FSDP.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/jobs/held_tensors.h"
#include "convert/jobs/stored_types.h"
#include "convert/keys/name_rules.h"
#include "convert/keys/value_options.h"
#include "core/base/notes.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "hf/model.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"
#include "mappings/model/parameter_marks.h"

namespace mckpt::impl {

// The training run whose rank is asked about. Plain values.
struct ShareRun {
  HfModelOptions model{};
  Grid grid{};
  FsdpSetup fsdp{};
  FrozenNames frozen{};
  std::optional<Spelling> spelling{};  // none: the usual one
  bool spelling_found = false;         // by names: one without effect is not a mistake of the user
  std::string hybrid_pattern{};
  ValueOptions values{};
};

enum class ShareForm : u8 { kAtRunTime, kWrapped, kSaved };

class RankShare {
 public:
  // Opens the model. `form`: kAtRunTime, or another one for a run under Megatron-FSDP. `values`: the weights
  // are going to be read; without them a folder with a config is enough. Throws what opening the model,
  // cell_of(), ModelMap::parameters() and FsdpLayout throw, kUsage for a spelling without effect and for
  // options of Megatron-FSDP for another run, kNoSuchTensor for a rule that matches nothing.
  RankShare(const std::string& path, ShareRun run, i64 rank, ShareForm form, bool values);
  RankShare(const RankShare&) = delete;
  RankShare& operator=(const RankShare&) = delete;

  // The tensors in the form, whose parameters belong to this object. pre: both forms are with FSDP or both
  // are without.
  std::vector<HeldTensor> held(ShareForm form) const;
  ParameterMarks marks(const HeldTensor& held) const { return marks_of(*held.parameter, run_.grid); }
  // The parameter as another of its cells holds it.
  ModelParameter on_part(const ModelParameter& parameter, i64 part) const;

  const HfModel& model() const { return model_; }
  const Grid& grid() const { return run_.grid; }
  const RunSetup& setup() const { return setup_; }
  // Facts about the model that were inferred, and rows that its vocabulary gets.
  Notes notes() const;

 private:
  void refuse_unmatched() const;

  ShareRun run_;
  ShareForm form_;
  Cell cell_;
  HfModel model_;
  std::optional<LayerPattern> pattern_;
  RunSetup setup_;
  StoredTypes types_;
  std::vector<ModelParameter> parameters_;
};

}  // namespace mckpt::impl
