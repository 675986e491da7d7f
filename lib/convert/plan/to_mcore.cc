// Plans a torch_dist checkpoint. The target is the same for every source: a key table of torch_dist, and the
// boxes of a grid under its keys (TorchDistPlan). The tensors of a Hugging Face model are gathered along the
// runs of the table; the keys of another checkpoint are recut (mcore_recut.h).
#include "convert/plan/to_mcore.h"

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/keys/key_table.h"
#include "convert/objects/common_state.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/plan/iteration.h"
#include "convert/plan/mcore_objects.h"
#include "convert/plan/mcore_recut.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/run_config.h"
#include "convert/plan/setting_identity.h"
#include "convert/source/checkpoint.h"
#include "convert/source/choice.h"
#include "convert/source/identity.h"
#include "convert/source/import_source.h"
#include "convert/source/own_model.h"
#include "convert/source/unsaid_order.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/assets.h"
#include "hf/model.h"
#include "io/copy/read_sums.h"
#include "io/dcp/run/args.h"
#include "io/output/plan_identity.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/grid_fit.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMarkFile = "metadata.json";

void refuse_unmatched(const ToMcoreOptions& options, const DcpLayout& layout) {
  options.values.rules.refuse_unmatched(layout.key_count(), [&](i64 k) -> std::string_view {
    return layout.key(static_cast<i32>(k)).name.text;
  });
}

// `of_run`: what a training run put beside the data of a torch_dist checkpoint that is the source.
FsdpFolder::Beside beside_of(std::string common, SideFiles assets, SideFiles of_run = {}) {
  FsdpFolder::Beside beside{std::move(of_run), std::move(assets)};
  std::erase_if(beside.files.copies,
                [](const SideFile& file) { return file.name == kCommonFile || file.name == kMarkFile; });
  beside.files.texts.insert_or_assign(std::string(kCommonFile), std::move(common));
  beside.files.texts.insert_or_assign(std::string(kMarkFile), torch_dist_mark());
  return beside;
}

// Files such as the train_state.pt and run_config.yaml of Megatron-Bridge, with the new grid.
SideFiles files_of_run(const Store& source, const Grid& grid) {
  if (source.format() != Format::kDcpTorchDist) return {};
  return files_beside(source, files_with_grid(source, grid));
}

std::string table_of(const HfModel& model, const std::optional<SafetensorsOriginal>& original) {
  return tensor_table_json(model.map->sources(), model.expert_layout, model.map_text, original);
}

std::string identity_of(const ToMcoreOptions& options, const HfModel& model, const Store& source,
                        const std::string& metadata, const FsdpFolder::Beside& beside) {
  PlanIdentity text("to-mcore", MCKPT_VERSION);
  set_run(text, options.grid, {}, {});
  set_values(text, options.values);
  text.set("iteration", options.iteration.value_or(0)).set("weights_only", options.weights_only);
  text.set("layers", static_cast<i64>(options.layers)).set("spelling", to_string(options.spelling));
  text.set("vpp", options.pipeline.chunks);
  text.set("first_stage_layers", options.pipeline.first_layers.value_or(0));
  text.set("last_stage_layers", options.pipeline.last_layers.value_or(0));
  text.set("source_tp", options.checkpoint.source_tp.value_or(0));
  text.set("source_etp", options.checkpoint.source_etp.value_or(0));
  text.add(kSourceFiles, source_identity(source)).add(kBesideFiles, beside.identity());
  return text.add(kMapping, mapping_identity(model)).add(kResult, metadata).text();
}

void finish(Conversion& c, const ToMcoreOptions& options, const TorchDistRun& run, const TorchDistPlan& plan,
            const KeyTable& keys, const HfModel& model, FsdpFolder::Beside beside,
            std::optional<i64> iteration) {
  c.opening = options.checkpoint.model.files;
  c.proof.rule = [&keys, &plan](i64 target, i64) -> std::string_view {
    return keys.parameter(keys[plan.table_key[plan.first_chunk[target]]]).row->rule;
  };
  std::string metadata = plan_iteration(c, plan.layout, options.target, iteration, beside);
  c.identity = identity_of(options, model, *c.store, metadata, beside);
  set_run(c, "torch_dist", options.grid, plan.layout);
  if (run.own_norms)
    c.details.note("norms   in front of experts have the name that Megatron's own modules give them");
  c.details.note(
      cat("layers  ", run.stacked ? "stacked: a tensor has a parameter of all layers" : "each has tensors of its own"));
}

Conversion plan_of_model(const ToMcoreOptions& options) {
  Conversion c;
  auto& source = c.parts.make<ImportSource>(open_import_source({.source = options.source,
                                                                .assets = options.checkpoint.assets,
                                                                .accept = options.checkpoint.accept,
                                                                .model_dict = options.model_dict,
                                                                .model = options.checkpoint.model,
                                                                .threads = options.threads}));
  const HfModel& model = source.model;
  c.notes.append(notes_of(model));
  if (source.run) {
    c.notes.append(std::move(source.run->notes));
    c.details.append(std::move(source.run->left_out));
    c.oddities = std::move(source.run->damage);
    c.dropped_objects = source.run->objects;
  }
  if (options.rank == 0) refuse_unlike_copies(model, options.threads);
  const ModelMap& map = *model.map;
  auto& run = c.parts.make<TorchDistRun>(torch_dist_run(options, map));
  run.run = {vocab_rows(map.model(), map.family(), run.grid.tp, options.values.vocab),
             options.values.params_dtype.of(map.model())};
  if (std::string text = padding_note(map.model(), run.run, run.grid.tp); !text.empty()) c.notes.note(text);
  if (std::string text = idle_sizes_note(map.model(), run.grid); !text.empty()) c.notes.note(text);
  if (std::string text = vocab_run_note(map.model(), map.family(), run.run, run.grid.tp); !text.empty())
    c.details.note(text);
  auto& keys = c.parts.make<KeyTable>(map, run.run, KeyTable::TorchDist{});
  auto& plan = c.parts.make<TorchDistPlan>(keys, run);
  refuse_unmatched(options, plan.layout);
  auto& chunks = c.parts.make<TorchDistChunks>(plan);
  if (source.has_sums()) c.sums = std::make_unique<ReadSums>();
  c.job = std::make_unique<ChunkJob>(
      import_job(*model.store, keys, chunks));
  c.sources = source.folders();
  c.store = model.store.get();
  c.proof = import_proof(*model.store, keys, chunks, plan.layout);
  note_constants(keys, c.details);
  note_view(c, *model.store);
  std::string common = mcore_objects(model, {run, options.iteration}).common;
  finish(c, options, run, plan, keys, model,
         beside_of(std::move(common), source.assets(table_of(model, source.original()))), options.iteration);
  return c;
}

Conversion plan_of_checkpoint(std::unique_ptr<Store> source, const ToMcoreOptions& options) {
  if (options.values.params_dtype.kind != ParamsDtype::kSource)
    throw Error(Code::kUsage, "`params_dtype` is for a Hugging Face model")
        .help("`dtype` gives the type of the weights");
  Conversion c;
  auto& r = c.parts.make<Recut>(std::move(source), options);
  c.oddities.push_back({r.model().store().root(), r.model().oddities()});
  note_choice(options.source, r.model().store(), c.notes);
  warn_of_unsaid_order(r.model().on_disk(), c.notes);
  r.plan();
  refuse_unmatched(options, r.layout().layout);
  c.sums = std::make_unique<ReadSums>();
  c.job = std::make_unique<ChunkJob>(r.job());
  c.sources = {r.model().store().root(), r.model().assets_path()};
  c.store = &r.source();
  c.proof = r.proof();
  c.notes.append(r.notes);
  std::optional<i64> iteration =
      iteration_of_result(r.model().on_disk(), options.iteration, !r.state_form().empty(), c.notes);
  McoreObjects objects = mcore_objects(r.model(), r.keys(), {r.run(), iteration, r.state_form()});
  c.notes.append(objects.notes);
  c.dropped_objects = objects.left_out;
  const HfModel& model = r.model().model();
  SideFiles assets = plan_assets(r.model().assets_path(), table_of(model, original_files(model)),
                                 options.checkpoint.model.files);
  finish(c, options, r.run(), r.layout(), r.keys(), model,
         beside_of(std::move(objects.common), std::move(assets),
                   files_of_run(r.model().on_disk(), options.grid)),
         iteration);
  return c;
}

}  // namespace

Conversion plan_to_mcore(const ToMcoreOptions& options) {
  return plan_to_mcore(open_store(options.source, options.checkpoint.model.files), options);
}

Conversion plan_to_mcore(std::unique_ptr<Store> source, const ToMcoreOptions& options) {
  if (format_family(source->format()) == FormatFamily::kSafetensors || has_own_names(*source))
    return plan_of_model(options);
  refuse_model_dict(options.model_dict, options.source);
  return plan_of_checkpoint(std::move(source), options);
}

}  // namespace mckpt::impl
