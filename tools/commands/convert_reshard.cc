// convert reshard: a Megatron-FSDP checkpoint, with its optimizer states, onto another grid or strategy.
#include <algorithm>

#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/fsdp_plan.h"
#include "convert/keys/key_section.h"
#include "convert/plan/identity.h"
#include "convert/plan/iteration.h"
#include "core/base/name_hash.h"
#include "runtime/comm/world.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/layout_flags.h"
#include "tools/plain_reshard.h"
#include "tools/reshard_objects.h"
#include "tools/run_conversion.h"

namespace mckpt {
namespace {

class Reshard {
 public:
  explicit Reshard(CommandLine& line) : flags_(line.flags()) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void open();
  void set_up_run();
  void match_states();
  void carry_tensors(DcpLayout& layout) const;
  void keep_forms(std::vector<ModelParameter>& parameters) const;
  std::vector<i32> source_of(const DcpLayout& layout) const;
  FusedTables fused_tensors(const FsdpPlan& plan, std::span<const i32> source) const;
  ProofInput proof(const DcpLayout& layout) const;
  ConversionPlan plan();
  ConversionPlan plan_known();
  SideFiles assets() const;
  const Store& source() const { return source_.store(); }
  const CheckpointModel& model() const { return source_.model(); }

  const GlobalFlags& flags_;
  ConvertOptions options_;
  ReshardSource source_;
  GridFlags grid_flags_;
  FsdpFlags fsdp_flags_;

  std::unique_ptr<KeyTable> target_keys_;  // of fused tensors as the new grid stores them
  FsdpRun run_;
  Companions states_;
  std::vector<i32> whole_;               // tensors that are carried as they are
  NameMap<std::string, i32> tensor_of_;  // by whole name
};

void Reshard::parse(CommandLine& line) {
  options_.declare(line,
                   "a sharded checkpoint: fsdp_dtensor, torch_dist, FSDP2 or Megatron-FSDP alone; a run's "
                   "folder, or one iteration",
                   "the folder of the checkpoints of the new run");
  options_.declare_resume(line);
  options_.declare_iteration(line, "as SRC is called");
  source_.declare(line);
  grid_flags_.declare(line);
  fsdp_flags_.declare(line);
  line.description(
      "Writes the same weights, optimizer states and objects, bit for bit, as chunks of the ranks of another "
      "grid or strategy, under the names of fsdp_dtensor.");
  line.description(
      "Which parameters share a buffer is read from the model's config.json (--assets), or from the "
      "checkpoint itself if mckpt made it. Files beside the data are copied too.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert reshard ckpt ckpt_on_8 --tp 4 --dp 2");
  line.example("mckpt convert reshard ckpt/iter_0001000 out --assets Qwen3-30B-A3B --ep 8 --weights-only");
  line.example("mckpt convert reshard torch_dist_ckpt out --assets Qwen3-30B-A3B --tp 2 --dp 4");
  line.example("mckpt convert reshard fsdp2_ckpt out --any-model --dp 8");
  line.parse();
  options_.check();
  source_.check();
}

void Reshard::open() {
  source_.open(options_.source, flags_);
  set_up_run();
  target_keys_ =
      std::make_unique<KeyTable>(model().map(), run_.run, KeyTable::Cells{run_.grid.tp, run_.grid.etp},
                                 [&](const std::string& name) { return model().keys().find(name) >= 0; });
  source_.open_rank_states([&](std::vector<ModelParameter>& p) { keep_forms(p); }, flags_);
  for (i32 t = 0; t < source().tensor_count(); t++)
    if (!source_.left_behind(t)) tensor_of_.emplace(source().name(t), t);
}

void Reshard::set_up_run() {
  run_.grid = grid_flags_.grid();
  if (std::string text = grid_flags_.note(); !text.empty()) note(flags_, text);
  run_.run = model().setup();
  i64 rows = run_.run.vocab_rows > 0 ? run_.run.vocab_rows : model().map().model().vocab;
  if (rows % run_.grid.tp != 0)
    throw Error(Code::kVocabulary,
                "the vocabulary of the checkpoint does not divide by the tensor-parallel size")
        .expected(cat("a multiple of ", run_.grid.tp, " rows"))
        .found(rows)
        .help("resharding keeps every row; export the model and convert it with --vocab-size auto");
  run_.fsdp = fsdp_flags_.setup(run_.grid);
  run_.threads = options_.threads;
  run_.dtype_rule = [&](std::string_view key) -> std::optional<DType> {
    i32 t = model().tensor_of_key(*model_key(key));
    return t < 0 ? std::nullopt : std::optional(model().store().dtype(t));
  };
  if (!source_.any_model()) return;
  source_.refuse_ranks_of_unknown_model();
  if (run_.grid.tp * run_.grid.ep * run_.grid.etp > 1)
    throw Error(Code::kUnknownPartition,
                "of a model without tables it is not known how ranks split its parameters")
        .expected("--tp 1, --ep 1 and --etp 1")
        .found(to_string(run_.grid))
        .help(
            source_.said_any_model()
                ? "--assets HF_DIR names the model; or choose a grid of --dp, --cp and --hsdp"
                : "reshard the checkpoint before its layers get the names of another form, or after convert "
                  "hybrid-to-gpt or ungroup; or choose a grid of --dp, --cp and --hsdp");
  // The packing that never cuts a row, whatever shapes stand beside each other.
  run_.fsdp.engine = Engine::kV2;
  if (!source_.said_any_model())
    note(flags_,
         "the layers have the names of another form than those of the model in hf_assets, and keep them");
  if (model().translated())
    note(flags_,
         "names   become those of fsdp_dtensor: model.X is model.module.X, and states of the optimizer "
         "likewise; "
         "--keep-names keeps them");
  note(flags_,
       "the model is taken as unknown: all parameters of one type lie in one buffer, in the order of the "
       "checkpoint");
}

// Every state beside the key that it is of; one that has a value for the whole parameter is carried as it is.
// Throws kCounterpart where one has another shape: a local piece was saved for the whole.
void Reshard::match_states() {
  const Store& store = source();
  states_.resize(static_cast<std::size_t>(target_keys_->size()));
  std::vector<std::string> faults;
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::optional<StateName> state = state_name(store.name(t));
    if (!state || source_.left_behind(t)) continue;
    i32 key = target_keys_->find(state->key);
    std::string name(store.name(t));
    if (key < 0 && source_.is_carried(state->key)) {
      whole_.push_back(t);
    } else if (key < 0) {
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
  throw Error(Code::kCounterpart, "states of the optimizer do not fit their parameters")
      .each_note(faults)
      .file(store.root())
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

// What no rank cuts: random states, and what modules and optimizers keep beside their tensors. Whole, by the
// last rank.
void Reshard::carry_tensors(DcpLayout& layout) const {
  const Store& store = source();
  i32 last = static_cast<i32>(run_.grid.world() - 1);
  auto carry = [&](i32 t, DcpName name) {
    i32 key = layout.add_key({std::move(name), store.dtype(t), store.shape(t)});
    layout.add_chunk(key, last, zero_offsets(store.dims(t).size()), store.dims(t));
  };
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::string name(store.name(t));
    std::optional<std::string> key = model_key(name);
    if (key && (name.ends_with("._extra_state") || source_.is_carried(*key)))
      carry(t, {name, {kModelDot}});
    else if (!key && !state_name(name) && !source_.left_behind(t))
      carry(t, source_.named(name));
  }
  for (i32 t : whole_) carry(t, {std::string(store.name(t)), state_name(store.name(t))->dots});
}

std::vector<i32> Reshard::source_of(const DcpLayout& layout) const {
  std::vector<i32> out;
  for (i32 k = 0; k < layout.key_count(); k++) {
    const std::string& name = layout.key(k).name.text;
    auto at = tensor_of_.find(name);
    out.push_back(at != tensor_of_.end() ? at->second : model().tensor_of_key(*model_key(name)));
  }
  return out;
}

ProofInput Reshard::proof(const DcpLayout& layout) const {
  ProofInput input{side_of(source()), side_of(layout)};
  for (i32 t = 0; t < source().tensor_count(); t++)
    if (source_.left_behind(t)) input.dropped.push_back(t);
  input.copies.assign(model().chunks().copies().begin(), model().chunks().copies().end());
  return input;
}

// Tensors that are stored cell after cell, on either side.
FusedTables Reshard::fused_tensors(const FsdpPlan& plan, std::span<const i32> source) const {
  FusedTables fused{model().keys(), *target_keys_, {}};
  fused.key_of.assign(static_cast<std::size_t>(this->source().tensor_count()), -1);
  for (std::size_t k = 0; k < plan.table_key.size(); k++) {
    const CheckpointKey& to = (*target_keys_)[plan.table_key[k]];
    i32 from = model().keys().find(to.name);
    if (to.by_cell || model().keys()[from].by_cell) fused.key_of[static_cast<std::size_t>(source[k])] = from;
  }
  return fused;
}

// The assets that mckpt put beside a checkpoint go along also where the model is taken as unknown.
SideFiles Reshard::assets() const {
  if (!source_.any_model())
    return plan_assets(
        model().assets_path(),
        tensor_table_json(model().map().sources(), model().model().expert_layout, model().model().map_text));
  std::string assets = own_assets(model().on_disk());
  return assets.empty() ? SideFiles{} : plan_assets(assets, tensor_table_text(Folder(assets)));
}

ConversionPlan Reshard::plan() {
  if (std::unique_ptr<Store> plain = source_.open_plain(options_.source, flags_)) {
    Grid grid = grid_flags_.grid();
    if (std::string text = grid_flags_.note(); !text.empty()) note(flags_, text);
    return PlainReshard{std::move(plain), options_.target, options_.iteration, grid, source_.weights_only()}
        .plan();
  }
  return plan_known();
}

ConversionPlan Reshard::plan_known() {
  open();
  match_states();
  fsdp_flags_.refuse_unmatched(target_keys_->parameters());
  ConversionPlan c;
  auto& plan = c.parts.make<FsdpPlan>(
      *target_keys_, run_, [&](std::vector<ModelParameter>& p) { keep_forms(p); }, states_);
  carry_tensors(plan.layout);
  std::optional<i64> iteration =
      options_.iteration ? options_.iteration : iteration_of(model().store().root());
  ReshardObjects objects(source_, run_, options_.iteration, flags_);
  std::vector<CarriedRecord> records = objects.add_to(plan.layout);

  auto& source = c.parts.make<std::vector<i32>>(source_of(plan.layout));
  auto& chunks = c.parts.make<PlannedChunks>(plan.layout, source);
  auto& fused = c.parts.make<FusedTables>(fused_tensors(plan, source));
  c.sums = std::make_unique<ReadSums>();
  if (launch().rank == 0) expect_object_files(*c.sums, model().on_disk());
  c.job = std::make_unique<ChunkJob>(reshard_job(this->source(), chunks, &fused, std::move(records)));

  c.sources = source_.roots();
  c.store = &this->source();
  c.proof = proof(plan.layout);
  c.dropped_objects = objects.left_out();
  FsdpFolder::Beside beside{files_beside(model().store(), objects.changed_files()), assets()};
  std::string metadata = plan_iteration(c, plan.layout, options_.target, iteration, beside);
  c.identity = PlanIdentity("reshard").add(source_.identity()).add(metadata).add(beside.identity()).text();
  return c;
}

Exit Reshard::run() {
  return run_conversion([this] { return plan(); }, "convert", options_, flags_);
}

}  // namespace

Exit convert_reshard(CommandLine& line) { return Reshard(line).run(); }

}  // namespace mckpt
