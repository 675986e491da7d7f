// Plans the import of a model in the order in which a tensor passes through the code:
//
//   ImportSource  which tensors there are               FsdpPlan      which rank writes which box of a key
//   HfModel       which tensor is which parameter       import_job    which tensors feed which chunks
//   KeyTable      which items each key has
#include "convert/plan/hf_to_fsdp.h"

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/keys/fsdp_plan.h"
#include "convert/keys/fsdp_run.h"
#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "convert/objects/megatron_args.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/plan/iteration.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/setting_identity.h"
#include "convert/source/identity.h"
#include "convert/source/import_source.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "hf/assets.h"
#include "hf/model.h"
#include "io/copy/read_sums.h"
#include "io/dcp/write/layout.h"
#include "io/output/plan_identity.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/grid_fit.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"

namespace mckpt::impl {
namespace {

ImportSource open_source(const HfToFsdpOptions& options) {
  return open_import_source({.source = options.source,
                             .assets = options.assets,
                             .accept = options.accept,
                             .model_dict = options.model_dict,
                             .model = options.model,
                             .threads = options.threads});
}

std::string identity_of(const HfToFsdpOptions& options, const HfModel& model, const std::string& metadata,
                        const FsdpFolder::Beside& beside) {
  PlanIdentity text("hf-to-fsdp", MCKPT_VERSION);
  set_run(text, options.grid, options.fsdp, options.frozen);
  set_values(text, options.values);
  text.set("iteration", options.iteration.value_or(0)).set("spelling", to_string(options.spelling));
  text.set("hybrid_pattern", options.hybrid_pattern);
  text.set("expert_layout", expert_layout_name(options.model.expert_layout));
  text.add(kSourceFiles, source_identity(*model.store)).add(kBesideFiles, beside.identity());
  return text.add(kMapping, mapping_identity(model)).add(kResult, metadata).text();
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

void note_source(Conversion& c, ImportSource& source) {
  c.notes.append(notes_of(source.model));
  if (!source.run) return;
  c.notes.append(std::move(source.run->notes));
  c.details.append(std::move(source.run->left_out));
  c.oddities = std::move(source.run->damage);
  c.dropped_objects = source.run->objects;
}

Conversion plan_hf_to_fsdp(const HfToFsdpOptions& options) {
  refuse_unlike_v2(options.grid, options.fsdp);
  refuse_other_types(options.fsdp, options.values);
  Conversion c;
  auto& source = c.parts.make<ImportSource>(open_source(options));
  const HfModel& model = source.model;
  note_source(c, source);
  if (options.rank == 0) refuse_unlike_copies(model, options.threads);
  const LayerPattern* groups = nullptr;
  if (!options.hybrid_pattern.empty())
    groups = &c.parts.make<LayerPattern>(parse_pattern(options.hybrid_pattern, Dialect::kGrouped));
  auto& run = c.parts.make<FsdpRun>(fsdp_run(options, *model.map, groups));
  if (std::string text = padding_note(model.map->model(), run.run, run.grid.tp); !text.empty())
    c.notes.note(text);
  if (std::string text = idle_sizes_note(model.map->model(), run.grid); !text.empty()) c.notes.note(text);
  std::string needed = vocab_run_note(model.map->model(), model.map->family(), run.run, run.grid.tp);
  if (!needed.empty()) c.details.note(needed);
  auto& keys = c.parts.make<KeyTable>(*model.map, run.run, KeyTable::Cells{run.grid.tp, run.grid.etp});
  auto& plan =
      c.parts.make<FsdpPlan>(keys, run, [&](std::vector<ModelParameter>& p) { options.frozen.apply(p); });
  DcpLayout& layout = plan.layout;
  options.frozen.refuse_unmatched(keys.parameters());
  options.values.rules.refuse_unmatched(layout.key_count(), [&](i64 k) -> std::string_view {
    return layout.key(static_cast<i32>(k)).name.text;
  });
  if (!run.fsdp.saves_state_dict())
    add_run_objects(layout, {*model.map, model.config.run, run, options.iteration.value_or(0)});
  auto& chunks = c.parts.make<PlannedChunks>(layout, plan.table_key);
  if (source.has_sums()) c.sums = std::make_unique<ReadSums>();
  c.job = std::make_unique<ChunkJob>(
      import_job(*model.store, keys, chunks));

  c.sources = source.folders();
  c.opening = options.model.files;
  c.store = model.store.get();
  c.proof = import_proof(*model.store, keys, chunks, layout);
  note_constants(keys, c.details);
  note_view(c, *model.store);
  c.proof.rule = [&keys, &plan](i64 target, i64) -> std::string_view {
    return keys.parameter(keys[plan.table_key[target]]).row->rule;
  };
  c.twins = {&keys, &layout, plan.table_key};
  std::string table =
      tensor_table_json(model.map->sources(), model.expert_layout, model.map_text, source.original());
  FsdpFolder::Beside beside;
  beside.assets = source.assets(table);
  std::string metadata = plan_iteration(c, layout, options.target, options.iteration, beside);
  c.identity = identity_of(options, model, metadata, beside);
  set_run(c, fsdp_format(run.fsdp), run.grid, layout);
  return c;
}

}  // namespace mckpt::impl
