// Opens the model, and lays the rank's share out:
//
//   grid, rank -> cell -> ModelMap::parameters() -> at run time: names and local shapes
//                                                -> with FSDP: FsdpLayout, names or keys, and boxes
#include "convert/rank/rank_share.h"

#include "convert/dialects/fsdp/run.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "mappings/fsdp/fp8.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

HfModel opened(const std::string& path, HfModelOptions reading, bool values) {
  reading.shapes_only = !values;
  reading.bad_numbers = BadNumbers::kShow;
  return open_hf_model(values ? path : folder_with_config(path, reading.files), reading);
}

// Weights in 8 bits are bytes at run time, made by Transformer Engine.
void show_fp8(const std::vector<ModelParameter>& parameters, FsdpSetup setup, std::vector<HeldTensor>& held) {
  if (setup.fp8 == Fp8Recipe::kNone) return;
  setup.saved = false;
  refuse_fp8(parameters, setup);
  for (HeldTensor& h : held)
    if (is_fp8_weight(*h.parameter, setup)) h.dtype = DType::kU8;
}

}  // namespace

RankShare::RankShare(const std::string& path, ShareRun run, i64 rank, ShareForm form, bool values)
    : run_(std::move(run)),
      form_(form),
      cell_(cell_of(run_.grid, rank)),
      model_(opened(path, run_.model, values)),
      pattern_(given_pattern(run_.hybrid_pattern, run_.grid.pp)) {
  const ModelMap& map = *model_.map;
  const bool fsdp = form != ShareForm::kAtRunTime;
  if (fsdp) {
    refuse_pipeline(run_.grid);
    refuse_unlike_v2(run_.grid, run_.fsdp);
  } else if (std::string_view option = option_of_fsdp(run_.fsdp, run_.grid); !option.empty()) {
    throw Error(Code::kUsage, cat(option, " is for a run under Megatron-FSDP, and this one is without"))
        .help(cat("leave ", option, " out"));
  }
  if (!fsdp && values && run_.fsdp.fp8 != Fp8Recipe::kNone)
    throw Error(Code::kUsage, "the bytes of weights in 8 bits are not known")
        .note("Transformer Engine makes them, with scales of its own")
        .help("leave out `fp8_recipe`, or what asks for values");
  setup_ = {vocab_rows(map.model(), map.family(), run_.grid.tp, run_.values.vocab),
            run_.values.params_dtype.of(map.model()), pattern_ ? &*pattern_ : nullptr,
            run_.spelling.value_or(Spelling{})};
  types_ = {run_.values.dtype, [this](std::string_view name) { return run_.values.rules.of(name); }};
  if (fsdp) {
    refuse_other_types(run_.fsdp, run_.values);
    follow_engine(run_.fsdp, setup_, types_);
  }
  if (!run_.spelling_found) refuse_without_effect(setup_.spelling, map, setup_);
  parameters_ = map.parameters(run_.grid, cell_, setup_);
  run_.frozen.apply(parameters_);
  refuse_unmatched();
}

std::vector<HeldTensor> RankShare::held(ShareForm form) const {
  const HolderRank holder{model_.map->model(), run_.grid, cell_};
  if (form == ShareForm::kAtRunTime) {
    std::vector<HeldTensor> held = held_at_run_time(parameters_, holder, types_);
    show_fp8(parameters_, run_.fsdp, held);
    return held;
  }
  FsdpSetup sharding = run_.fsdp;
  sharding.saved = form == ShareForm::kSaved;
  const FsdpLayout layout(parameters_, model_.map->model(), run_.grid, sharding);
  return form == ShareForm::kSaved ? held_as_saved(parameters_, layout, holder, types_)
                                   : held_wrapped(parameters_, layout, holder, types_);
}

ModelParameter RankShare::on_part(const ModelParameter& parameter, i64 part) const {
  ModelParameter other = parameter;
  other.part.index = part;
  other.holding = std::make_shared<const Holding>(model_.map->holding(parameter, other.part, setup_));
  return other;
}

Notes RankShare::notes() const {
  Notes notes = notes_of(model_);
  if (std::string text = padding_note(model_.map->model(), setup_, run_.grid.tp); !text.empty())
    notes.note(std::move(text));
  return notes;
}

// Throws if a name of a frozen parameter or of a rule matches no parameter of any rank. A name that only this
// rank lacks is right.
void RankShare::refuse_unmatched() const {
  const DtypeRules& rules = run_.values.rules;
  if (run_.frozen.empty() && rules.empty()) return;
  const ModelMap& map = *model_.map;
  std::vector<ModelParameter> all = map.parameters(Grid{}, Cell{}, setup_);
  run_.frozen.refuse_unmatched(all);
  std::vector<std::string> names;
  if (form_ == ShareForm::kSaved)
    for (FsdpTensor& t : FsdpLayout(all, map.model(), Grid{}, run_.fsdp).tensors(Cell{}))
      names.push_back(std::move(t.key));
  else
    for (const ModelParameter& p : all) names.push_back(p.name);
  rules.refuse_unmatched(std::ssize(names), [&](i64 i) -> std::string_view { return names[i]; });
}

}  // namespace mckpt::impl
