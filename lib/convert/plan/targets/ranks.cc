// Plans the files of ranks. The two kinds of sources differ in the job alone:
//
//   a Hugging Face folder   import_job    a task is everything that is fed by the same tensors
//   a sharded checkpoint    gather_job    a task is one tensor of one rank
//
// The parameters that several ranks hold alike are written for each of them; the proof counts the first as
// made of the source, and the others as its copies.
#include "convert/plan/targets/ranks.h"

#include "convert/dialects/ranks/plan.h"
#include "convert/dialects/ranks/write_facts.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "convert/open/checkpoint.h"
#include "convert/open/left_states.h"
#include "convert/open/open.h"
#include "convert/plan/iteration.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/result_pattern.h"
#include "convert/plan/setting_identity.h"
#include "convert/plan/target.h"
#include "convert/plan/vocab_change.h"
#include "core/base/error.h"
#include "core/hybrid/mtp_names.h"
#include "hf/model.h"
#include "io/copy/written_sums.h"
#include "io/dcp/keys/key.h"
#include "io/store/names/torch_names.h"
#include "io/store/store.h"
#include "io/sums/sha256.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/expand.h"
#include "mappings/model/fit/grid_fit.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"

namespace mckpt::impl {
namespace {

i64 vocab_of(const Opened& source, const ToRanksOptions& options, Notes& notes) {
  const ModelMap& map = *source.model()->map;
  const i64 cells = options.grid.tp;
  if (source.sharded) return resharded_vocab(*source.sharded, cells, options.values.vocab, notes);
  RunSetup run{vocab_rows(map.model(), map.family(), cells, options.values.vocab), std::nullopt};
  if (std::string text = padding_note(map.model(), run, cells); !text.empty()) notes.note(text);
  return run.vocab_rows;
}

RankRun run_of(const Opened& source, const ToRanksOptions& options, Notes& notes) {
  const ModelMap& map = *source.model()->map;
  RankRun run;
  run.grid = options.grid;
  if (std::string text = idle_sizes_note(map.model(), run.grid); !text.empty()) notes.note(text);
  run.pipeline = options.pipeline;
  run.run.vocab_rows = vocab_of(source, options, notes);
  run.run.params_dtype = options.values.params_dtype.of(map.model());
  run.run.spelling = options.spelling;
  run.run.whole = true;
  refuse_without_effect(options.spelling, map, run.run, true);
  run.main_dtype = options.values.dtype;
  run.dtype_rule = [rules = options.values.rules](std::string_view name) { return rules.of(name); };
  run.threads = options.threads;
  return run;
}

// Throws kGridMisfit with all that does not divide over the grid.
void refuse_misfit(const ModelMap& map, const RankRun& run) {
  const PipelineSplit split = pipeline_split(std::ssize(map.model().text.layers), run.grid.pp, run.pipeline);
  map.parameters(run.grid, Cell{}, run.run, split.part(0, 0));
}

// A checkpoint has every parameter in the type of its run, which need not be the config's.
Adjust as_stored(const Opened& source, const RankRun& run) {
  if (!source.sharded || run.run.params_dtype) return [](std::vector<ModelParameter>&) {};
  return [types = source.sharded->stored_types()](std::vector<ModelParameter>& parameters) {
    for (ModelParameter& p : parameters)
      if (i32 t = p.sources[0]; t >= 0 && types[t]) p.dtype = *types[t];
  };
}

ChunkJob job_of(const Opened& source, const KeyTable& keys, const RankPlan& plan) {
  if (source.table) return import_job(source.store(), keys, plan);
  return gather_job(source.store(), {source.sharded->keys(), source.sharded->chunks()}, {keys, plan});
}

ProofInput proof_of(const Opened& source, const KeyTable& keys, const RankPlan& plan) {
  ProofSide target{plan.size(), [&](i64 t) { return plan.name(t); }, [&](i64 t) { return plan.items(t); }};
  ProofInput input = source.table ? import_proof(source.store(), keys, plan, std::move(target))
                                  : ProofInput{side_of(source.sharded->keys()), std::move(target)};
  const i64 vocab = source.table ? keys.map().model().vocab : source.sharded->setup().vocab_rows;
  for (i64 c = 0; c < plan.size(); c++) {
    if (plan.copy(c)) input.tied.push_back(c);
    // The last ranks may have rows of padding alone that the source does not have.
    bool of_vocab = keys.parameter(keys[plan.key(c)]).row->rule == "vocab";
    if (of_vocab && plan.box(c).offsets[0] >= vocab) input.padding.push_back(c);
  }
  input.rule = [&](i64 t, i64) -> std::string_view { return keys.parameter(keys[plan.key(t)]).row->rule; };
  return input;
}

PlanIdentity settings_of(const ToRanksOptions& options) {
  PlanIdentity text("to-ranks", MCKPT_VERSION);
  const Grid& g = options.grid;
  text.set("tp", g.tp).set("ep", g.ep).set("etp", g.etp).set("pp", g.pp).set("cp", g.cp).set("dp", g.dp);
  text.set("vpp", options.pipeline.chunks);
  text.set("first_stage_layers", options.pipeline.first_layers.value_or(0));
  text.set("last_stage_layers", options.pipeline.last_layers.value_or(0));
  text.set("hybrid_pattern", options.hybrid_pattern);
  set_values(text, options.values);
  text.set("iteration", options.iteration.value_or(0)).set("spelling", to_string(options.spelling));
  text.set("source_tp", options.checkpoint.source_tp.value_or(0));
  text.set("source_etp", options.checkpoint.source_etp.value_or(0));
  text.set("expert_layout", expert_layout_name(options.checkpoint.model.expert_layout));
  return text;
}

// A digest of all bytes of the files that belong to no tensor.
std::string digest_of_frames(const RankPlan& plan) {
  Sha256 sha;
  for (i64 f = 0; f < plan.file_count(); f++)
    for (const TorchLayout::Piece& p :
         plan.layout(f).frame(std::vector<u32>(static_cast<std::size_t>(plan.layout(f).tensor_count()))))
      sha.update(p.bytes);
  return sha.hex_digest();
}

void refuse_instances(const Grid& grid) {
  if (grid.hsdp > 1)
    throw Error(Code::kBadLayout, "instances are those of Megatron-FSDP, which saves no files of ranks")
        .expected("`hsdp` 1")
        .found(grid.hsdp)
        .help("leave it out");
}

// `to-pt` sounds like one .pt file.
void refuse_name_of_file(const std::string& target) {
  if (!has_torch_suffix(target)) return;
  throw Error(Code::kUsage,
              "the result is a folder with a file of each rank, and its name is that of one file")
      .expected("a name that does not end in .pt, .pth, .bin or .ckpt")
      .found(escaped(target, 4096))
      .help(
          "`mckpt convert safetensors-to-pt`, in Python to=\"torch-file\", makes one .pt file of a Hugging Face model");
}

void refuse_contradictions(const ToRanksOptions& options) {
  refuse_instances(options.grid);
  refuse_name_of_file(options.target);
}

void set_ranks(Planned& c, const Grid& grid, const RankPlan& plan) {
  c.grid = grid;
  c.format = "Megatron rank files";
  c.extent = cat(counted(plan.file_count(), "file"), " (", to_string(grid), "), ",
                 counted(plan.size(), "tensor"), ", ", human_bytes(c.bytes));
  if (const std::size_t copies = c.proof.tied.size(); copies > 0)
    c.details.note(cat("copies  ", copies, copies == 1 ? " is a copy" : " are copies",
                       " of what an earlier rank holds"));
}

// Which version of Megatron-Core names the layers of MTP as the files do.
void note_mtp_names(Notes& notes, const KeyTable& keys, const Spelling& spelling) {
  for (i32 k = 0; k < keys.size(); k++)
    if (old_mtp_name(keys[k].name))
      return notes.note(
          spelling.old_mtp
              ? cat("MTP     its layers are named ", kOldMtpModule, ", as by Megatron-Core up to 0.16")
              : cat("MTP     its layers are named ", kMtpModule, ", as by Megatron-Core 0.19; `spelling` ",
                    kOldMtpWord, " writes ", kOldMtpModule, ", as up to 0.16"));
}

// The states of the optimizer in the source; the files have weights only.
i64 states_of(const Opened& source) {
  if (!source.sharded) return 0;
  const Store& store = source.store();
  i64 states = std::ssize(source.sharded->left_states());
  for (i64 t = 0; t < store.tensor_count(); t++) states += is_of_optimizer(store.name(t));
  return states;
}

bool has_old_mtp(const Store& ranks) {
  for (i64 t = 0; t < ranks.tensor_count(); t++)
    if (std::string name(ranks.name(t)); with_usual_mtp(name) != name) return true;
  return false;
}

// The options that a resharding takes from its source, where it is to be like it.
ToRanksOptions settled(ToRanksOptions options, const Opened& source, Notes& notes) {
  if (!options.like_source) return options;
  const i64 states = states_of(source);
  if (states > 0 && !options.weights_only)
    throw Error(Code::kNotHeld,
                cat("files of ranks are written without the states of the optimizer, and there are ",
                    counted(states, "tensor"), " of them"))
        .file(source.store().root())
        .help(
            "`weights_only` leaves them out; `mckpt convert to-mcore` and `mckpt convert to-fsdp` take them along, where the optimizer is not distributed");
  if (!options.own_spelling) {
    options.spelling = source.sharded->spelling_on_disk();
    options.spelling.old_mtp = has_old_mtp(source.on_disk());
  }
  options.iteration = iteration_of_result(source.on_disk(), options.iteration, false, {}, notes);
  return options;
}

class RanksTarget final : public Target {
 public:
  RanksTarget(const Opened& source, const ToRanksOptions& given);
  void write_frame(const FramePlace& to) const override;

 private:
  const ToRanksOptions options_;
  RankRun run_;
  std::optional<LayerPattern> pattern_;  // run_ points to it
  std::optional<KeyTable> keys_;
  std::optional<RankPlan> plan_;
};

RanksTarget::RanksTarget(const Opened& source, const ToRanksOptions& given)
    : options_(settled(given, source, notes)), run_(run_of(source, options_, notes)) {
  const HfModel& model = *source.model();
  const ModelMap& map = *model.map;
  if (std::string text = vocab_run_note(map.model(), map.family(), run_.run, run_.grid.tp); !text.empty())
    details.note(text);
  const PatternChoice choice{run_.grid.pp, options_.hybrid_pattern, false};
  pattern_ = source.sharded ? result_pattern(*source.sharded, choice, run_.pipeline, notes)
                            : result_pattern(map, choice, run_.pipeline, notes);
  if (pattern_) run_.pipeline.pattern = &*pattern_;
  refuse_misfit(map, run_);
  keys_.emplace(map, run_.run, KeyTable::Cells{run_.grid.tp, run_.grid.etp});
  note_mtp_names(notes, *keys_, options_.spelling);
  const RanksResult result{map, model.config.run, run_,
                           source.sharded ? source.sharded->setup().vocab_rows : 0, options_.iteration};
  plan_.emplace(*keys_, run_, as_stored(source, run_),
                rank_front(source.sharded ? source.sharded->facts() : RunFacts{}, result, notes));
  options_.values.rules.refuse_unmatched(plan_->size(), [&](i64 t) { return plan_->parameter(t); });
  job = std::make_unique<ChunkJob>(job_of(source, *keys_, *plan_));
  proof = proof_of(source, *keys_, *plan_);
  if (source.table) note_constants(*keys_, details);
  set_files(*this, plan_->files());
  place_iteration(*this, options_.target, options_.iteration);
  SideFiles assets = source.assets_with_table();
  identified.settings = settings_of(options_);
  identified.mapping = mapping_identity(model), identified.result = digest_of_frames(*plan_);
  add_beside(*this, {{}, std::move(assets)});
  set_ranks(*this, run_.grid, *plan_);
  note_left_states(states_of(source), details);
}

// The end of an archive lists its records: without it a file cannot be loaded.
void RanksTarget::write_frame(const FramePlace& to) const {
  const WrittenSums::ByPlace sums = to.sums.by_place();
  to.write_beside();
  for (i32 f = 0; f < static_cast<i32>(plan_->file_count()); f++) {
    const TorchLayout& layout = plan_->layout(f);
    std::vector<u32> crc32s(static_cast<std::size_t>(layout.tensor_count()));
    for (i64 t = 0; t < layout.tensor_count(); t++)
      if (layout.data_bytes(t) > 0) crc32s[t] = sums.crc32(f, layout.data_offset(t));
    for (const TorchLayout::Piece& p : layout.frame(crc32s)) to.out.write(f, p.offset, p.bytes);
  }
}

}  // namespace

Conversion plan_to_ranks(const ToRanksOptions& options) {
  refuse_contradictions(options);
  return plan_to_ranks(open_store(options.source, options.checkpoint.model.files), options);
}

Conversion plan_to_ranks(std::unique_ptr<Store> store, const ToRanksOptions& options) {
  refuse_contradictions(options);
  OpenAs how{.source = options.source,
             .how = options.checkpoint,
             .model_dict = options.model_dict,
             .threads = options.threads};
  how.how.model.leave_unlike_copies = options.rank != 0;
  return plan_to_ranks(open(std::move(store), how), options);
}

Conversion plan_to_ranks(Opened source, const ToRanksOptions& options) {
  refuse_contradictions(options);
  return plan(std::move(source),
              [&](Opened& opened) { return std::make_unique<RanksTarget>(opened, options); });
}

}  // namespace mckpt::impl
