// Plans the import of a model in the order in which a tensor passes through the code:
//
//   Opened        which tensors there are               FsdpPlan      which rank writes which box of a key
//   HfModel       which tensor is which parameter       import_job    which tensors feed which chunks
//   KeyTable      which items each key has
#include "convert/plan/targets/fsdp.h"

#include "convert/dialects/fsdp/plan.h"
#include "convert/dialects/fsdp/run.h"
#include "convert/dialects/fsdp/write_facts.h"
#include "convert/facts/megatron_args.h"
#include "convert/facts/rope_args.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/open.h"
#include "convert/plan/iteration.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/result_ranks.h"
#include "convert/plan/setting_identity.h"
#include "convert/plan/target.h"
#include "core/hybrid/pattern.h"
#include "hf/model.h"
#include "io/dcp/write/layout.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

PlanIdentity settings_of(const HfToFsdpOptions& options) {
  PlanIdentity text("hf-to-fsdp", MCKPT_VERSION);
  set_run(text, options.grid, options.fsdp, options.frozen);
  set_values(text, options.values);
  text.set("iteration", options.iteration.value_or(0)).set("spelling", to_string(options.spelling));
  text.set("hybrid_pattern", options.hybrid_pattern);
  text.set("expert_layout", expert_layout_name(options.model.expert_layout));
  return text;
}

void refuse_contradictions(const HfToFsdpOptions& options) {
  refuse_unlike_v2(options.grid, options.fsdp);
  refuse_other_types(options.fsdp, options.values);
}

class FsdpTarget final : public Target {
 public:
  FsdpTarget(const Opened& source, const HfToFsdpOptions& options);
  void write_frame(const FramePlace& to) const override { impl::write_frame(plan_.layout, to); }

 private:
  const ModelMap& map_;
  std::optional<LayerPattern> groups_;
  FsdpRun run_;
  KeyTable keys_;
  FsdpPlan plan_;
  PlannedChunks chunks_;
};

FsdpTarget::FsdpTarget(const Opened& source, const HfToFsdpOptions& options)
    : map_(*source.model()->map),
      groups_(given_pattern(options.hybrid_pattern, options.grid.pp)),
      run_(fsdp_run(options, map_, groups_ ? &*groups_ : nullptr)),
      keys_(map_, run_.run, KeyTable::Cells{run_.grid.tp, run_.grid.etp}),
      plan_(keys_, run_, [&](std::vector<ModelParameter>& p) { options.frozen.apply(p); }),
      chunks_(plan_.layout, plan_.table_key) {
  const HfModel& model = *source.model();
  DcpLayout& layout = plan_.layout;
  note_sizes(map_, run_.run, run_.grid, notes, details);
  options.frozen.refuse_unmatched(keys_.parameters());
  options.values.rules.refuse_unmatched(layout.key_count(), [&](i64 k) -> std::string_view {
    return layout.key(static_cast<i32>(k)).name.text;
  });
  const i64 iteration = options.iteration.value_or(0);
  if (!run_.fsdp.saves_state_dict()) {
    write_fsdp_facts(facts_of_model(fsdp_args(map_, model.config.run, run_, iteration)), layout);
    note_unsaid_rope(map_.model(), model.config.run, notes);
  }
  job = std::make_unique<ChunkJob>(import_job(source.store(), keys_, chunks_));
  proof = import_proof(source.store(), keys_, chunks_, layout);
  proof.rule = [this](i64 target, i64) -> std::string_view {
    return keys_.parameter(keys_[plan_.table_key[target]]).row->rule;
  };
  note_constants(keys_, details);
  SideFiles assets = source.assets_with_table();
  std::string metadata =
      plan_iteration(*this, layout, options.target, options.iteration, {{}, std::move(assets)});
  identified.settings = settings_of(options);
  identified.mapping = mapping_identity(model), identified.result = metadata;
  set_run(*this, fsdp_format(run_.fsdp), run_.grid, layout);
}

}  // namespace

FsdpRun fsdp_run(const HfToFsdpOptions& options, const ModelMap& map, const LayerPattern* groups) {
  FsdpRun run;
  run.grid = options.grid;
  run.run = {vocab_rows(map.model(), map.family(), run.grid.tp, options.values.vocab),
             options.values.params_dtype.of(map.model()), groups, options.spelling};
  refuse_without_effect(options.spelling, map, run.run);
  run.fsdp = options.fsdp;
  run.main_dtype = options.values.dtype;
  run.dtype_rule = [rules = options.values.rules](std::string_view key) { return rules.of(key); };
  follow_engine(run.fsdp, run.run, run);
  run.threads = options.threads;
  return run;
}

Conversion plan_hf_to_fsdp(const HfToFsdpOptions& options) {
  refuse_contradictions(options);
  OpenAs how{.source = options.source,
             .model_dict = options.model_dict,
             .model_alone = true,
             .threads = options.threads};
  how.how.assets = options.assets, how.how.accept = options.accept, how.how.model = options.model;
  how.how.model.leave_unlike_copies = options.rank != 0;
  return plan_hf_to_fsdp(open(how), options);
}

Conversion plan_hf_to_fsdp(Opened source, const HfToFsdpOptions& options) {
  refuse_contradictions(options);
  return plan(std::move(source), [&](Opened& opened) {
    refuse_many_ranks(options.grid.world(), opened.store());
    return std::make_unique<FsdpTarget>(opened, options);
  });
}

}  // namespace mckpt::impl
