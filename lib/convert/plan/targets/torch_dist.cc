// Plans a torch_dist checkpoint. The target is the same for every source: a key table of torch_dist, and the
// boxes of a grid under its keys (TorchDistPlan). The tensors of a Hugging Face model are gathered along the
// runs of the table; the keys of another checkpoint are recut (recut.h).
#include "convert/plan/targets/torch_dist.h"

#include "convert/dialects/torch_dist/table.h"
#include "convert/dialects/torch_dist/write_facts.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "convert/open/open.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/iteration.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/result_pattern.h"
#include "convert/plan/result_ranks.h"
#include "convert/plan/run_config.h"
#include "convert/plan/setting_identity.h"
#include "convert/plan/target.h"
#include "convert/plan/targets/recut.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "hf/model.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/run/args.h"
#include "io/store/store.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/expand.h"
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
  if (source.driver().dialect != DcpDialect::kTorchDist) return {};
  return files_beside(source, files_with_grid(source, grid));
}

PlanIdentity settings_of(const ToMcoreOptions& options) {
  PlanIdentity text("to-mcore", MCKPT_VERSION);
  set_run(text, options.grid, {}, {});
  set_values(text, options.values);
  text.set("iteration", options.iteration.value_or(0)).set("weights_only", options.weights_only);
  text.set("layers", static_cast<i64>(options.layers))
      .set("spelling", options.spelling ? cat("given ", to_string(*options.spelling)) : std::string());
  text.set("hybrid_pattern", options.hybrid_pattern);
  text.set("vpp", options.pipeline.chunks);
  text.set("first_stage_layers", options.pipeline.first_layers.value_or(0));
  text.set("last_stage_layers", options.pipeline.last_layers.value_or(0));
  text.set("source_tp", options.checkpoint.source_tp.value_or(0));
  text.set("source_etp", options.checkpoint.source_etp.value_or(0));
  return text;
}

// A torch_dist checkpoint, whatever it is made of.
class McoreTarget : public Target {
 public:
  void write_frame(const FramePlace& to) const override { impl::write_frame(layout().layout, to); }

 protected:
  virtual const TorchDistPlan& layout() const = 0;
  virtual const KeyTable& keys() const = 0;
  // Everything but the tensors. `common`: the file common.pt; `of_run`: as in beside_of().
  void finish(const Opened& source, const ToMcoreOptions& options, const TorchDistRun& run,
              std::string common, std::optional<i64> iteration, SideFiles of_run = {}) {
    const HfModel& model = *source.model();
    proof.rule = [this](i64 target, i64) -> std::string_view {
      const TorchDistPlan& plan = layout();
      return keys().parameter(keys()[plan.table_key[plan.first_chunk[target]]]).row->rule;
    };
    identified.result =
        plan_iteration(*this, layout().layout, options.target, iteration,
                       beside_of(std::move(common), source.assets_with_table(), std::move(of_run)));
    identified.settings = settings_of(options), identified.mapping = mapping_identity(model);
    set_run(*this, "torch_dist", options.grid, layout().layout);
    if (run.run.groups)
      details.note(
          cat("groups  of the pattern ", run.run.groups->text, ": the layers of one share its number"));
    if (run.own_norms)
      details.note("norms   in front of experts have the name that Megatron's own modules give them");
    details.note(cat("layers  ", run.stacked ? "stacked: a tensor has a parameter of all layers"
                                             : "each has tensors of its own"));
  }
};

// The tensors of a model, gathered along the runs of the table.
class McoreOfModel final : public McoreTarget {
 public:
  McoreOfModel(const Opened& source, const ToMcoreOptions& options)
      : map_(*source.model()->map),
        pattern_(torch_dist_pattern(options, map_, notes)),
        run_(torch_dist_run(options, map_, pattern_)),
        keys_(map_, run_.run, torch_dist_split),
        plan_(keys_, run_),
        chunks_(plan_) {
    note_sizes(map_, run_.run, run_.grid, notes, details);
    refuse_unmatched(options, plan_.layout);
    job = std::make_unique<ChunkJob>(import_job(source.store(), keys_, chunks_));
    proof = import_proof(source.store(), keys_, chunks_, plan_.layout);
    note_constants(keys_, details);
    const HfModel& model = *source.model();
    WrittenFacts written;
    std::string common = common_file(
        {}, {run_, keys_, torch_dist_args(map_, model.config.run, run_, ""), 0, options.iteration}, written);
    notes.append(written.notes);
    finish(source, options, run_, std::move(common), options.iteration);
  }

 private:
  const TorchDistPlan& layout() const override { return plan_; }
  const KeyTable& keys() const override { return keys_; }

  const ModelMap& map_;
  std::optional<LayerPattern> pattern_;
  TorchDistRun run_;
  KeyTable keys_;
  TorchDistPlan plan_;
  TorchDistChunks chunks_;
};

// The keys of another checkpoint, recut.
class McoreOfCheckpoint final : public McoreTarget {
 public:
  McoreOfCheckpoint(const Opened& source, const ToMcoreOptions& options) : recut_(*source.sharded, options) {
    recut_.plan();
    refuse_unmatched(options, recut_.layout().layout);
    job = std::make_unique<ChunkJob>(recut_.job());
    proof = recut_.proof();
    notes.append(recut_.notes);
    const Store& on_disk = source.on_disk();
    const RunFacts facts = source.sharded->facts();
    const std::string form = recut_.state_form();
    const std::optional<i64> iteration = iteration_of_result(
        on_disk, options.iteration, !form.empty(), [&] { return facts.iteration(); }, notes);
    const HfModel& model = *source.model();
    WrittenFacts written;
    std::string common =
        common_file(facts,
                    {.run = recut_.run(),
                     .keys = keys(),
                     .made = torch_dist_args(*model.map, model.config.run, recut_.run(), form),
                     .source_rows = source.sharded->setup().vocab_rows,
                     .iteration = iteration,
                     .state_form = form},
                    written);
    notes.append(written.notes);
    dropped_objects = written.left_out;
    finish(source, options, recut_.run(), std::move(common), iteration, files_of_run(on_disk, options.grid));
  }

 private:
  const TorchDistPlan& layout() const override { return recut_.layout(); }
  const KeyTable& keys() const override { return recut_.keys(); }

  Recut recut_;
};

OpenAs opening_of(const ToMcoreOptions& options) {
  OpenAs how{.source = options.source,
             .how = options.checkpoint,
             .model_dict = options.model_dict,
             .threads = options.threads};
  how.how.states = options.weights_only ? StateUse::kLeft : StateUse::kRead;
  how.how.model.leave_unlike_copies = options.rank != 0;
  // Megatron's own modules save norms under the names that fused ones have, so torch_dist has these whatever
  // a run has in memory. The names of another torch_dist stay.
  how.how.names = KeyNames::kUsual;
  return how;
}

}  // namespace

std::optional<LayerPattern> torch_dist_pattern(const ToMcoreOptions& options, const ModelMap& map,
                                               Notes& notes) {
  if (!options.hybrid_pattern.empty() && options.layers == LayerStacks::kStacked)
    throw Error(Code::kUsage, "layers in groups are never one tensor").help("leave `layers` out");
  return result_pattern(map, {options.grid.pp, options.hybrid_pattern}, options.pipeline, notes);
}

TorchDistRun torch_dist_run(const ToMcoreOptions& options, const ModelMap& map,
                            const std::optional<LayerPattern>& pattern) {
  TorchDistRun run = torch_dist_run(options, map);
  const bool named = pattern && pattern->has_groups();
  run.run = {vocab_rows(map.model(), map.family(), run.grid.tp, options.values.vocab),
             options.values.params_dtype.of(map.model()), named ? &*pattern : nullptr};
  if (pattern) run.pipeline.pattern = &*pattern;
  run.stacked &= !pattern;
  return run;
}

Conversion plan_to_mcore(const ToMcoreOptions& options) {
  return plan_to_mcore(open_store(options.source, options.checkpoint.model.files), options);
}

Conversion plan_to_mcore(std::unique_ptr<Store> store, const ToMcoreOptions& options) {
  if (!is_of_model(*store) && options.values.params_dtype.kind != ParamsDtype::kSource)
    throw Error(Code::kUsage, "`params_dtype` is for a Hugging Face model")
        .help("`dtype` gives the type of the weights");
  return plan_to_mcore(open(std::move(store), opening_of(options)), options);
}

Conversion plan_to_mcore(Opened source, const ToMcoreOptions& options) {
  return plan(std::move(source), [&](Opened& opened) -> std::unique_ptr<Target> {
    refuse_many_ranks(options.grid.world(), opened.store());
    if (opened.sharded) return std::make_unique<McoreOfCheckpoint>(opened, options);
    return std::make_unique<McoreOfModel>(opened, options);
  });
}

}  // namespace mckpt::impl
