// Plans the files of ranks. The two kinds of sources differ in the job alone:
//
//   a Hugging Face folder   import_job    a task is everything that is fed by the same tensors
//   a sharded checkpoint    gather_job    a task is one tensor of one rank
//
// The parameters that several ranks hold alike are written for each of them; the proof counts the first as
// made of the source, and the others as its copies.
#include "convert/plan/reshard/to_ranks.h"

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/keys/fsdp_run.h"
#include "convert/keys/key_table.h"
#include "convert/keys/rank_plan.h"
#include "convert/keys/stored_chunks.h"
#include "convert/objects/kept_args.h"
#include "convert/objects/megatron_args.h"
#include "convert/objects/source_args.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/plan/hf_to_fsdp.h"
#include "convert/plan/iteration.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/setting_identity.h"
#include "convert/source/checkpoint.h"
#include "convert/source/choice.h"
#include "convert/source/identity.h"
#include "convert/source/import_source.h"
#include "convert/source/left_states.h"
#include "convert/source/own_model.h"
#include "convert/source/unsaid_order.h"
#include "convert/source/vocab_change.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/mtp_names.h"
#include "hf/assets.h"
#include "hf/model.h"
#include "io/copy/read_sums.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/file/sha256.h"
#include "io/output/plan_identity.h"
#include "io/pickle/copy.h"
#include "io/pickle/writer.h"
#include "io/store/open/torch_names.h"
#include "io/store/store.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/expand.h"
#include "mappings/model/grid_fit.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"

namespace mckpt::impl {
namespace {

// What is needed of a source, whichever of the two kinds it is: exactly one of `checkpoint` and `import` is
// set.
struct OpenSource {
  const HfModel& model;
  const ImportSource* import = nullptr;
  const CheckpointModel* checkpoint = nullptr;

  const Store& store() const { return import ? *import->model.store : checkpoint->store(); }
  const ModelMap& map() const { return *model.map; }
};

// A folder of a model, or a checkpoint of a training run with the model's own names.
bool has_model_names(const Store& store) {
  return format_family(store.format()) == FormatFamily::kSafetensors || has_own_names(store);
}

OpenSource open_source(std::unique_ptr<Store> store, const ToRanksOptions& options, Conversion& c) {
  if (has_model_names(*store)) {
    auto& source = c.parts.make<ImportSource>(open_import_source({.source = options.source,
                                                                  .assets = options.checkpoint.assets,
                                                                  .accept = options.checkpoint.accept,
                                                                  .model_dict = options.model_dict,
                                                                  .model = options.checkpoint.model,
                                                                  .threads = options.threads}));
    note_source(c, source);
    if (options.rank == 0) refuse_unlike_copies(source.model, options.threads);
    if (source.has_sums()) c.sums = std::make_unique<ReadSums>();
    return {source.model, &source, nullptr};
  }
  refuse_model_dict(options.model_dict, options.source);
  auto& checkpoint = c.parts.make<CheckpointModel>(open_checkpoint(std::move(store), options.checkpoint));
  c.oddities.push_back({checkpoint.store().root(), checkpoint.oddities()});
  note_choice(options.source, checkpoint.on_disk(), c.notes);
  warn_of_unsaid_order(checkpoint.on_disk(), c.notes);
  c.sums = std::make_unique<ReadSums>();
  return {checkpoint.model(), nullptr, &checkpoint};
}

i64 vocab_of(const OpenSource& source, const ToRanksOptions& options, Conversion& c) {
  const ModelMap& map = source.map();
  const i64 cells = options.grid.tp;
  if (source.checkpoint) return resharded_vocab(*source.checkpoint, cells, options.values.vocab, c.notes);
  RunSetup run{vocab_rows(map.model(), map.family(), cells, options.values.vocab), std::nullopt};
  if (std::string text = padding_note(map.model(), run, cells); !text.empty()) c.notes.note(text);
  return run.vocab_rows;
}

RankRun run_of(const OpenSource& source, const ToRanksOptions& options, Conversion& c) {
  RankRun run;
  run.grid = options.grid;
  if (std::string text = idle_sizes_note(source.map().model(), run.grid); !text.empty()) c.notes.note(text);
  run.pipeline = options.pipeline;
  run.run.vocab_rows = vocab_of(source, options, c);
  run.run.params_dtype = options.values.params_dtype.of(source.map().model());
  run.run.spelling = options.spelling;
  run.run.whole = true;
  refuse_without_effect(options.spelling, source.map(), run.run, true);
  run.main_dtype = options.values.dtype;
  run.dtype_rule = [rules = options.values.rules](std::string_view name) { return rules.of(name); };
  run.threads = options.threads;
  return run;
}

// Throws kGridMisfit with all that does not divide over the grid.
void refuse_misfit(const ModelMap& map, const RankRun& run) {
  const PipelineSplit split(std::ssize(map.model().text.layers), run.grid.pp, run.pipeline);
  map.parameters(run.grid, Cell{}, run.run, split.part(0, 0));
}

// A checkpoint has every parameter in the type of its run, which need not be that of the config.
Adjust as_stored(const OpenSource& source, const RankRun& run) {
  if (!source.checkpoint || run.run.params_dtype) return [](std::vector<ModelParameter>&) {};
  return [types = source.checkpoint->stored_types()](std::vector<ModelParameter>& parameters) {
    for (ModelParameter& p : parameters)
      if (i32 t = p.sources[0]; t >= 0 && types[t]) p.dtype = *types[t];
  };
}

ChunkJob job_of(const OpenSource& source, const KeyTable& keys, const RankPlan& plan) {
  if (source.import)
    return import_job(source.store(), keys, plan);
  return gather_job(source.store(), {source.checkpoint->keys(), source.checkpoint->chunks()}, {keys, plan});
}

ProofInput proof_of(const OpenSource& source, const KeyTable& keys, const RankPlan& plan) {
  ProofSide target{plan.size(), [&](i64 t) { return plan.name(t); }, [&](i64 t) { return plan.items(t); }};
  ProofInput input = source.import ? import_proof(source.store(), keys, plan, std::move(target))
                                   : ProofInput{side_of(source.checkpoint->keys()), std::move(target)};
  const i64 vocab = source.import ? source.map().model().vocab : source.checkpoint->setup().vocab_rows;
  for (i64 c = 0; c < plan.size(); c++) {
    if (plan.copy(c)) input.tied.push_back(c);
    // The last ranks may have rows of padding alone that the source does not have.
    bool of_vocab = keys.parameter(keys[plan.key(c)]).row->rule == "vocab";
    if (of_vocab && plan.box(c).offsets[0] >= vocab) input.padding.push_back(c);
  }
  input.rule = [&](i64 t, i64) -> std::string_view { return keys.parameter(keys[plan.key(t)]).row->rule; };
  return input;
}

std::string identity_of(const ToRanksOptions& options, const OpenSource& source, const RankPlan& plan,
                        const FsdpFolder::Beside& beside) {
  PlanIdentity text("to-ranks", MCKPT_VERSION);
  const Grid& g = options.grid;
  text.set("tp", g.tp).set("ep", g.ep).set("etp", g.etp).set("pp", g.pp).set("cp", g.cp).set("dp", g.dp);
  text.set("vpp", options.pipeline.chunks);
  text.set("first_stage_layers", options.pipeline.first_layers.value_or(0));
  text.set("last_stage_layers", options.pipeline.last_layers.value_or(0));
  set_values(text, options.values);
  text.set("iteration", options.iteration.value_or(0)).set("spelling", to_string(options.spelling));
  text.set("source_tp", options.checkpoint.source_tp.value_or(0));
  text.set("source_etp", options.checkpoint.source_etp.value_or(0));
  text.set("expert_layout", expert_layout_name(options.checkpoint.model.expert_layout));
  Sha256 sha;
  for (i64 f = 0; f < plan.file_count(); f++)
    for (const TorchLayout::Piece& p :
         plan.layout(f).frame(std::vector<u32>(static_cast<std::size_t>(plan.layout(f).tensor_count()))))
      sha.update(p.bytes);
  text.add(kSourceFiles, source_identity(source.store())).add(kBesideFiles, beside.identity());
  return text.add(kMapping, mapping_identity(source.model)).add(kResult, sha.hex_digest()).text();
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
          "`mckpt convert safetensors-to-pt`, in Python to=\"pt\", makes one .pt file of a Hugging Face "
          "model");
}

void refuse_contradictions(const ToRanksOptions& options) {
  refuse_instances(options.grid);
  refuse_name_of_file(options.target);
}

void set_ranks(Conversion& c, const Grid& grid, const RankPlan& plan) {
  c.grid = grid;
  c.format = "Megatron rank files";
  c.extent = cat(counted(plan.file_count(), "file"), " (", to_string(grid), "), ",
                 counted(plan.size(), "tensor"), ", ", human_bytes(c.bytes));
  if (const std::size_t copies = c.proof.tied.size(); copies > 0)
    c.details.note(cat("copies  ", copies, copies == 1 ? " is a copy" : " are copies", " of what an earlier rank holds"));
}

// The type of the parameters that the args say: the one that is written for all weights, or that of the run.
std::optional<DType> type_of_args(const RankRun& run) {
  return run.main_dtype ? run.main_dtype : run.run.params_dtype;
}

bool has_unfused_norms(const Spelling& spelling) {
  for (int row = 0; row < static_cast<int>(other_names().size()); row++)
    if (spelling.has(row) && other_names()[row].why == SpellingKind::kUnfusedNorm) return true;
  return false;
}

// The args of a checkpoint's run, as a pickle, with what the conversion changes; "" where there are none.
std::string args_of_source(const OpenSource& source, const RankRun& run, std::optional<i64> iteration,
                           Notes& notes) {
  if (!source.checkpoint) return "";
  std::shared_ptr<const PickleValue> own = args_of(source.checkpoint->on_disk());
  if (!own || !arg_of(*own, kAlwaysThere)) return "";
  std::string args =
      kept_args(copy_pickle(*own),
                {.map = source.map(),
                 .grid = run.grid,
                 .pipeline = run.pipeline,
                 .format = ArgsFormat::kTorch,
                 .vocab_rows = run.run.vocab_rows,
                 .source_rows = source.checkpoint->setup().vocab_rows,
                 .params_dtype = type_of_args(run),
                 .iteration = iteration.value_or(0),
                 .from_the_start = !iteration,
                 .norms = has_unfused_norms(run.run.spelling) ? NormNames::kOfMegatron
                                                              : NormNames::kOfTransformerEngine},
                notes);
  put_arg(args, kRankArg, i64{0}, notes);
  return args;
}

std::string with_rank(std::string args, i64 rank) {
  Notes said_before;
  put_arg(args, kRankArg, rank, said_before);
  return args;
}

// Which version of Megatron-Core names the layers of MTP as the files do.
void note_mtp_names(Conversion& c, const KeyTable& keys, const Spelling& spelling) {
  for (i32 k = 0; k < keys.size(); k++)
    if (old_mtp_name(keys[k].name))
      return c.notes.note(
          spelling.old_mtp
              ? cat("MTP     its layers are named ", kOldMtpModule, ", as by Megatron-Core up to 0.16")
              : cat("MTP     its layers are named ", kMtpModule, ", as by Megatron-Core 0.19; `spelling` ",
                    kOldMtpWord, " writes ", kOldMtpModule, ", as up to 0.16"));
}

// The states of the optimizer in the source; the files have weights only.
i64 states_of(const OpenSource& source) {
  if (!source.checkpoint) return 0;
  const Store& store = source.checkpoint->store();
  i64 states = std::ssize(source.checkpoint->left_states());
  for (i64 t = 0; t < store.tensor_count(); t++) states += is_of_optimizer(store.name(t));
  return states;
}

bool has_old_mtp(const Store& ranks) {
  for (i64 t = 0; t < ranks.tensor_count(); t++)
    if (std::string name(ranks.name(t)); with_usual_mtp(name) != name) return true;
  return false;
}

// What a resharding takes from its source, where it is to be like it.
ToRanksOptions settled(ToRanksOptions options, const OpenSource& source, Notes& notes) {
  if (!options.like_source) return options;
  const i64 states = states_of(source);
  if (states > 0 && !options.weights_only)
    throw Error(Code::kNotHeld, cat("files of ranks are written without the states of the optimizer, and there are ",
                                    counted(states, "tensor"), " of them"))
        .file(source.store().root())
        .help("`weights_only` leaves them out; `mckpt convert to-mcore` and `mckpt convert to-fsdp` take them along, "
              "where the optimizer is not distributed");
  options.spelling = source.checkpoint->spelling_on_disk();
  options.spelling.old_mtp = has_old_mtp(source.checkpoint->on_disk());
  options.iteration = iteration_of_result(source.checkpoint->on_disk(), options.iteration, false, notes);
  return options;
}

}  // namespace

Conversion plan_to_ranks(const ToRanksOptions& options) {
  refuse_contradictions(options);
  return plan_to_ranks(open_store(options.source, options.checkpoint.model.files), options);
}

Conversion plan_to_ranks(std::unique_ptr<Store> store, const ToRanksOptions& given) {
  refuse_contradictions(given);
  Conversion c;
  auto& source = c.parts.make<OpenSource>(open_source(std::move(store), given, c));
  const ToRanksOptions options = settled(given, source, c.notes);
  auto& run = c.parts.make<RankRun>(run_of(source, options, c));
  const ModelConfig& model = source.map().model();
  if (std::string text = vocab_run_note(model, source.map().family(), run.run, run.grid.tp); !text.empty())
    c.details.note(text);
  refuse_misfit(source.map(), run);
  auto& keys = c.parts.make<KeyTable>(source.map(), run.run, KeyTable::Cells{run.grid.tp, run.grid.etp});
  note_mtp_names(c, keys, options.spelling);
  const i64 iteration = options.iteration.value_or(0);
  const std::string kept = args_of_source(source, run, options.iteration, c.notes);
  FsdpRun of_args;
  of_args.grid = run.grid, of_args.run = run.run;
  of_args.run.params_dtype = type_of_args(run);
  auto front = [&](PickleWriter& p, i64 rank) {
    p.text("args");
    if (!kept.empty())
      p.pickled(with_rank(kept, rank));
    else
      write_args(p, {.map = source.map(),
                     .entries = source.model.config.run,
                     .run = of_args,
                     .iteration = iteration,
                     .format = ArgsFormat::kTorch,
                     .pipeline = run.pipeline,
                     .rank = rank});
    p.text("checkpoint_version"), p.real(3.0);
    p.text("iteration"), p.integer(iteration);
  };
  auto& plan = c.parts.make<RankPlan>(keys, run, as_stored(source, run), front);
  options.values.rules.refuse_unmatched(plan.size(), [&](i64 t) { return plan.parameter(t); });
  c.job = std::make_unique<ChunkJob>(job_of(source, keys, plan));

  if (source.import)
    c.sources = source.import->folders();
  else
    c.sources = {source.store().root(), source.model.path};
  c.opening = options.checkpoint.model.files;
  c.store = &source.store();
  c.proof = proof_of(source, keys, plan);
  if (source.import) note_constants(keys, c.details);
  note_view(c, source.store());
  c.layout = &plan;
  c.files = plan.files();
  for (const OutputFile& f : c.files) c.bytes += f.bytes;
  std::optional<SafetensorsOriginal> original =
      source.import ? source.import->original() : original_files(source.model);
  std::string table =
      tensor_table_json(source.map().sources(), source.model.expert_layout, source.model.map_text, original);
  FsdpFolder::Beside beside;
  beside.assets =
      source.import ? source.import->assets(table) : plan_assets(source.model.path, table, c.opening);
  place_iteration(c, options.target, options.iteration);
  c.identity = identity_of(options, source, plan, beside);
  add_beside(c, std::move(beside));
  set_ranks(c, run.grid, plan);
  note_left_states(states_of(source), c.details);
  return c;
}

}  // namespace mckpt::impl
