// convert reshard: a Megatron-FSDP checkpoint, with its optimizer states, onto another grid or strategy.
#include <algorithm>
#include <array>

#include "convert/args_patch.h"
#include "convert/fsdp_plan.h"
#include "convert/key_section.h"
#include "convert/megatron_args.h"
#include "convert/rank_states.h"
#include "convert/reshard_job.h"
#include "core/name_hash.h"
#include "io/joined_store.h"
#include "tools/checkpoint_model.h"
#include "tools/convert_modes.h"
#include "tools/convert_options.h"
#include "tools/convert_report.h"
#include "tools/findings.h"
#include "tools/fsdp_folder.h"
#include "tools/layout_flags.h"
#include "tools/source_args.h"
#include "tools/staged_copy.h"

namespace mckpt {
namespace {

class Reshard {
 public:
  explicit Reshard(CommandLine& line) : flags_(line.flags()) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void open();
  void open_rank_states();
  void match_states();
  bool left_behind(i32 tensor) const;
  void carry_tensors(DcpLayout& layout) const;
  void carry_objects(DcpLayout& layout);
  std::string patched_args(const Object& object) const;
  void keep_forms(std::vector<ModelParameter>& parameters) const;
  const Store& source() const { return joined_ ? static_cast<const Store&>(*joined_) : model_.store(); }
  i32 source_tensor(const std::string& name) const;
  std::vector<i32> source_of(const DcpLayout& layout) const;
  void count(const DcpLayout& layout);
  std::string plan_text(const MetadataSummary& metadata) const;

  const GlobalFlags& flags_;
  ConvertOptions options_;
  CheckpointModelFlags model_flags_;
  GridFlags grid_flags_;
  FsdpFlags fsdp_flags_;
  bool weights_only_ = false;
  std::optional<std::string> rank_states_;
  std::optional<i64> source_ep_, source_hsdp_;

  CheckpointModel model_;
  std::unique_ptr<RankStates> states_of_ranks_;
  std::unique_ptr<JoinedStore> joined_;    // of the checkpoint and these
  std::unique_ptr<KeyTable> target_keys_;  // of fused tensors as the new grid stores them
  FsdpRun run_;
  Companions states_;
  std::vector<i32> whole_;               // tensors that are carried as they are
  NameMap<std::string, i32> tensor_of_;  // by whole name
  std::vector<CarriedRecord> records_;
  ConvertReport report_;
};

void Reshard::parse(CommandLine& line) {
  options_.declare(line, "a Megatron-FSDP checkpoint: a run's folder, or one iteration of it",
                   "the folder of the checkpoints of the new run");
  options_.declare_resume(line);
  options_.declare_iteration(line, "as SRC is called");
  line.flag("--weights-only", weights_only_, "leave the states of the optimizer behind");
  line.option("--rank-states DIR", rank_states_,
              "take them from files ..._rank_R.pt in which every rank of SRC's run saved its own pieces");
  line.option("--source-ep N", source_ep_, "expert-parallel ranks of that run, where SRC does not say so");
  line.option("--source-hsdp N", source_hsdp_, "the same of its FSDP instances");
  model_flags_.declare(line);
  grid_flags_.declare(line);
  fsdp_flags_.declare(line);
  line.description(
      "Writes the same weights, optimizer states and objects, bit for bit, in the chunks that the ranks of");
  line.description(
      "another grid or strategy hold. Which parameters lie in one buffer comes from the model's config.json");
  line.description(
      "(--assets), or from the checkpoint itself if mckpt made it. Under mpirun the ranks share the work.");
  line.example("mckpt convert reshard ckpt ckpt_on_8 --tp 4 --dp 2");
  line.example("mckpt convert reshard ckpt/iter_0001000 out --assets Qwen3-30B-A3B --ep 8 --weights-only");
  line.parse();
  options_.check();
  if (weights_only_ && rank_states_)
    throw Error(Code::kUsage,
                "--rank-states brings states, --weights-only leaves them behind: give one of them");
  if (!rank_states_ && (source_ep_ || source_hsdp_))
    throw Error(Code::kUsage, "--source-ep and --source-hsdp are said of the run that wrote --rank-states");
}

void Reshard::open() {
  model_flags_.parts = weights_only_ || rank_states_ ? NamesOf::kModel : NamesOf::kAll;
  model_.open(options_.source, model_flags_, flags_);
  run_.grid = grid_flags_.grid();
  if (std::string text = grid_flags_.note(); !text.empty()) note(flags_, text);
  run_.run = model_.setup();
  i64 rows = run_.run.vocab_rows > 0 ? run_.run.vocab_rows : model_.map().model().vocab;
  if (rows % run_.grid.tp != 0)
    throw Error(Code::kVocabulary,
                "the vocabulary of the checkpoint does not divide by the tensor-parallel size")
        .expected(cat("a multiple of ", run_.grid.tp, " rows"))
        .found(rows)
        .help("resharding keeps every row; export the model and convert it with --vocab-size auto");
  run_.fsdp = fsdp_flags_.setup(run_.grid);
  run_.dtype_rule = [&](std::string_view key) -> std::optional<DType> {
    i32 t = source_tensor(*model_key(key));
    return t < 0 ? std::nullopt : std::optional(model_.store().dtype(t));
  };
  target_keys_ =
      std::make_unique<KeyTable>(model_.map(), run_.run, KeyTable::Cells{run_.grid.tp, run_.grid.etp},
                                 [&](const std::string& name) { return model_.keys().find(name) >= 0; });
  if (rank_states_) open_rank_states();
  for (i32 t = 0; t < source().tensor_count(); t++)
    if (!left_behind(t)) tensor_of_.emplace(source().name(t), t);
}

// The run that wrote them is the one that wrote the checkpoint; what of it matters is how many ranks shared
// what.
void Reshard::open_rank_states() {
  RunFacts run = dcp_run_facts(model_.store());
  std::optional<i64> tp = model_flags_.source_tp ? model_flags_.source_tp : run.tensor_ranks;
  if (!tp)
    throw Error(Code::kUnknownPartition,
                "it is not known with how many tensor-parallel ranks SRC was written")
        .file(model_.store().root())
        .help("give it with --source-tp N");
  Grid grid;
  grid.tp = *tp;
  grid.etp = model_flags_.source_etp.value_or(run.expert_tensor_ranks.value_or(1));
  grid.ep = source_ep_.value_or(run.expert_ranks.value_or(1));
  grid.hsdp = source_hsdp_.value_or(run.fsdp_instances.value_or(1));
  states_of_ranks_ = std::make_unique<RankStates>(*rank_states_, model_.map(), model_.setup(), grid,
                                                  [&](std::vector<ModelParameter>& p) { keep_forms(p); });
  tell_findings(flags_, states_of_ranks_->findings(), states_of_ranks_->root());
  if (std::vector<std::string> other = states_of_ranks_->not_taken(); !other.empty())
    note(flags_, cat("of the ranks' files only states are taken, not ", listed(other)));
  joined_ = std::make_unique<JoinedStore>(model_.store(), *states_of_ranks_);
}

// States that the user does not want, or has others for.
bool Reshard::left_behind(i32 tensor) const {
  bool optimizer = source().name(tensor).starts_with("optimizer.");
  return optimizer && (weights_only_ || (joined_ && tensor < model_.store().tensor_count()));
}

// The tensor of the model section that has the key.
i32 Reshard::source_tensor(const std::string& name) const { return model_.tensor_of_key(name); }

// Every state beside the key that it is of; one that has a value for the whole parameter is carried as it is.
// Throws kCounterpart where one has another shape: a local piece was saved for the whole.
void Reshard::match_states() {
  const Store& store = source();
  states_.resize(static_cast<std::size_t>(target_keys_->size()));
  std::vector<std::string> faults;
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::optional<StateName> state = state_name(store.name(t));
    if (!state || left_behind(t)) continue;
    i32 key = target_keys_->find(state->key);
    std::string name(store.name(t));
    if (key < 0) {
      faults.push_back(cat(escaped(name), ": there is no such parameter"));
    } else if (std::ranges::equal(store.dims(t), (*target_keys_)[key].shape.dims())) {
      states_[static_cast<std::size_t>(key)].push_back({{name, state->dots}, store.dtype(t)});
    } else if (store.dims(t).empty()) {
      whole_.push_back(t);
    } else {
      faults.push_back(cat(escaped(name), ": the parameter has ", to_string((*target_keys_)[key].shape),
                           ", the state ", dims_to_string(store.dims(t))));
    }
  }
  if (faults.empty()) return;
  Error e(Code::kCounterpart, "states of the optimizer do not fit their parameters");
  for (std::size_t i = 0; i < std::min<std::size_t>(faults.size(), 20); i++) e.note(faults[i]);
  throw e.file(store.root())
      .help("--weights-only leaves the states behind, --rank-states takes them from files of the ranks");
}

// The fused parameters stay in the form, parts or whole, in which the source has them.
void Reshard::keep_forms(std::vector<ModelParameter>& parameters) const {
  fsdp_flags_.freeze(parameters);
  for (ModelParameter& p : parameters) {
    if (p.split != KeySplit::kNone && target_keys_->find(p.global_name) >= 0) p.split = KeySplit::kNone;
    KeySplit parts = rule_named(p.row->rule).parts;
    if (p.split == KeySplit::kNone && parts != KeySplit::kNone && target_keys_->find(p.global_name) < 0)
      p.split = parts;
  }
}

std::string Reshard::patched_args(const Object& object) const {
  std::string pickle = object_pickle(model_.store(), object);
  const Grid& g = run_.grid;
  const std::pair<const char*, i64> numbers[] = {{"tensor_model_parallel_size", g.tp},
                                                 {"context_parallel_size", g.cp},
                                                 {"expert_model_parallel_size", g.ep},
                                                 {"expert_tensor_parallel_size", g.etp},
                                                 {"data_parallel_size", g.dp},
                                                 {"world_size", g.world()},
                                                 {"num_distributed_optimizer_instances", g.hsdp}};
  for (auto [name, value] : numbers)
    if (!replace_integer(pickle, name, value) && pickle.find(name) != pickle.npos)
      warn(flags_, cat("args: ", name, " keeps its old value"));
  return pickle;
}

// What no rank cuts: random states, and what modules and optimizers keep beside their tensors. Whole, by the
// last rank.
void Reshard::carry_tensors(DcpLayout& layout) const {
  const Store& store = source();
  i32 last = static_cast<i32>(run_.grid.world() - 1);
  auto carry = [&](i32 t, std::vector<i32> dots) {
    i32 key = layout.add_key({{std::string(store.name(t)), std::move(dots)}, store.dtype(t), store.shape(t)});
    layout.add_chunk(key, last, zero_offsets(store.dims(t).size()), store.dims(t));
  };
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::string name(store.name(t));
    if (name.ends_with("._extra_state") && model_key(name))
      carry(t, {kModelDot});
    else if (!model_key(name) && !state_name(name) && !left_behind(t))
      carry(t, nesting_dots(name));
  }
  for (i32 t : whole_) carry(t, state_name(store.name(t))->dots);
}

void Reshard::carry_objects(DcpLayout& layout) {
  const Store& store = model_.store();
  for (const Object& o : store.objects()) {
    if (weights_only_ && o.name.starts_with("optimizer.")) continue;
    DcpName name{o.name, nesting_dots(o.name)};
    if (o.name == "iteration" && options_.iteration)
      layout.add_object(std::move(name), 0, pickle_integer(*options_.iteration));
    else if (o.name == "args")
      layout.add_object(std::move(name), 0, patched_args(o));
    else
      records_.push_back({o.file, 0, o.record_offset,
                          layout.add_object_record(std::move(name), 0, o.record_bytes), o.record_bytes});
  }
}

std::vector<i32> Reshard::source_of(const DcpLayout& layout) const {
  std::vector<i32> out;
  for (i32 k = 0; k < layout.key_count(); k++) {
    const std::string& name = layout.key(k).name.text;
    auto at = tensor_of_.find(name);
    out.push_back(at != tensor_of_.end() ? at->second : source_tensor(*model_key(name)));
  }
  return out;
}

// Every tensor of the source: in the layout, left behind because the user said so, or the copy of another.
void Reshard::count(const DcpLayout& layout) {
  report_.tensors_in = source().tensor_count();
  report_.tensors_out = report_.copied = layout.key_count();
  for (i32 t = 0; t < source().tensor_count(); t++) report_.dropped += left_behind(t);
  report_.tied = report_.tensors_in - report_.copied - report_.dropped;
}

std::string Reshard::plan_text(const MetadataSummary& metadata) const {
  PlanText plan("reshard");
  plan.add(source_identity(source()));
  plan.add(mapping_identity(model_.model(), model_flags_.model));
  plan.add(cat(model_flags_.source_tp.value_or(0), " ", model_flags_.source_etp.value_or(0)));
  plan.add(metadata.sha256);
  return plan.text();
}

Exit Reshard::run() {
  if (!follow_rank_0(options_)) return Exit::kOk;
  open();
  match_states();
  fsdp_flags_.refuse_unmatched(target_keys_->parameters());
  FsdpPlan plan(
      *target_keys_, run_, [&](std::vector<ModelParameter>& p) { keep_forms(p); }, states_);
  carry_tensors(plan.layout);
  carry_objects(plan.layout);

  std::vector<i32> source = source_of(plan.layout);
  PlannedChunks chunks(plan.layout, source);
  ReshardJob::Fused fused{model_.keys(), *target_keys_, {}};
  fused.key_of.assign(static_cast<std::size_t>(this->source().tensor_count()), -1);
  for (i32 k = 0; k < static_cast<i32>(plan.table_key.size()); k++) {
    const CheckpointKey& to = (*target_keys_)[plan.table_key[static_cast<std::size_t>(k)]];
    i32 from = model_.keys().find(to.name);
    if (to.by_cell || model_.keys()[from].by_cell)
      fused.key_of[static_cast<std::size_t>(source[static_cast<std::size_t>(k)])] = from;
  }
  ReadSums sums;
  ReshardJob job(this->source(), chunks, &plan.layout, &fused, records_, &sums);

  count(plan.layout);
  std::optional<i64> iteration =
      options_.iteration ? options_.iteration : iteration_of(model_.store().root());
  FsdpFolder folder(options_.target, iteration, !options_.no_sync);
  std::vector<OutputFile> files = plan.layout.files();
  MetadataSummary metadata = summarize_metadata(plan.layout);
  report_.bytes = metadata.bytes;
  for (const OutputFile& f : files) report_.bytes += f.bytes;
  report_.output = folder.path();
  note_plan(flags_, report_);
  std::vector<std::string> sources = {model_.store().root(), model_.assets_path()};
  if (states_of_ranks_) sources.push_back(states_of_ranks_->root());
  StagedCopy copy{report_.output,
                  plan_text(metadata),
                  sources,
                  files,
                  job,
                  [&](OutputFiles& out, const std::string& to) {
                    folder.write_rest(
                        plan.layout, out, to, model_.assets_path(),
                        tensor_table_json(model_.map().sources(), model_.model().expert_layout));
                  },
                  &sums,
                  &this->source()};
  return carry_out(copy, report_, "convert", options_, flags_, [&] { folder.write_tracker(); });
}

}  // namespace

Exit convert_reshard(CommandLine& line) { return Reshard(line).run(); }

}  // namespace mckpt
