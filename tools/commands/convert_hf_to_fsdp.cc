// convert hf-to-fsdp: a Hugging Face model into the fsdp_dtensor checkpoint that a Megatron run of any grid
// would have saved.
#include <algorithm>

#include "convert/jobs/chunk_jobs.h"
#include "convert/objects/megatron_args.h"
#include "convert/plan/identity.h"
#include "convert/plan/iteration.h"
#include "io/verify/manifest.h"
#include "runtime/comm/world.h"
#include "tools/checkpoint_model.h"
#include "tools/commands/convert_modes.h"
#include "tools/hf_model.h"
#include "tools/options/convert_options.h"
#include "tools/options/layout_flags.h"
#include "tools/run_conversion.h"

namespace mckpt {
namespace {

class HfToFsdp {
 public:
  explicit HfToFsdp(CommandLine& line) : flags_(line.flags()) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void open();
  ConversionPlan plan();
  ProofInput proof(const FsdpPlan& plan) const;
  std::string identity(const std::string& metadata, const FsdpFolder::Beside& beside) const;

  const GlobalFlags& flags_;
  ConvertOptions options_;
  HfModelFlags model_flags_;
  GridFlags grid_flags_;
  FsdpFlags fsdp_flags_;
  ValueFlags values_{"none"};
  DtypeRules rules_;

  HfModel model_;
  FsdpRun run_;
};

void HfToFsdp::parse(CommandLine& line) {
  options_.declare(line, "the folder of a Hugging Face model, with safetensors files",
                   "the folder of the checkpoints of a run; DST/release is made in it");
  options_.declare_resume(line);
  options_.declare_iteration(line, "DST/release");
  model_flags_.declare(line);
  grid_flags_.declare(line);
  fsdp_flags_.declare(line);
  values_.declare(line);
  options_.declare_casts(line);
  line.description(
      "Writes the checkpoint that a Megatron-FSDP run of this grid would have saved: each rank's chunks in a "
      "file of their own, under the keys of fsdp_dtensor.");
  line.description(
      "Values are kept bit for bit unless --dtype or --params-dtype says otherwise. A real run with fp32 "
      "main weights saves what --params-dtype auto --dtype fp32 writes.");
  line.description("Under mpirun the ranks share the work.");
  line.example("mckpt convert hf-to-fsdp Qwen3-30B-A3B ckpt --tp 2 --ep 4");
  line.example("mckpt convert hf-to-fsdp Qwen3-30B-A3B ckpt --tp 2 --ep 4 --dry-run --json");
  line.parse();
  options_.check();
}

void HfToFsdp::open() {
  run_.grid = grid_flags_.grid();
  if (std::string text = grid_flags_.note(); !text.empty()) note(flags_, text);
  model_ = open_hf_model(options_.source, model_flags_);
  if (!model_.has_data())
    throw Error(Code::kNotFound, "the folder has no weights to convert")
        .file(options_.source)
        .expected("safetensors files")
        .help(has_torch_weights(Folder(options_.source))
                  ? cat("mckpt convert pt-to-safetensors ", escaped(options_.source, 4096), " ",
                        escaped(options_.source, 4096),
                        "/model.safetensors   makes them of the .bin files there")
                  : "download the model with its weights");
  tell_notes(flags_, model_);
  if (launch().rank == 0) refuse_unlike_copies(model_, options_.threads);
  const ModelMap& map = *model_.map;
  run_.run = {vocab_rows(map.model(), map.family(), run_.grid.tp, values_.vocab()),
              values_.params_dtype(map.model())};
  run_.fsdp = fsdp_flags_.setup(run_.grid);
  run_.main_dtype = values_.dtype();
  run_.threads = options_.threads;
  rules_ = values_.dtype_rules();
  run_.dtype_rule = [&](std::string_view key) { return rules_.of(key); };
}

ProofInput HfToFsdp::proof(const FsdpPlan& plan) const {
  ProofInput input{side_of(*model_.store), side_of(plan.layout)};
  for (const UnreadTensor& u : model_.map->unread())
    (u.of >= 0 ? input.copies : input.dropped).push_back(u.tensor);
  return input;
}

std::string HfToFsdp::identity(const std::string& metadata, const FsdpFolder::Beside& beside) const {
  PlanIdentity text("hf-to-fsdp");
  text.add(source_identity(*model_.store)).add(beside.identity()).add(mapping_identity(model_));
  text.add(run_.run.params_dtype ? dtype_name(*run_.run.params_dtype) : "none").add(metadata);
  return text.text();
}

ConversionPlan HfToFsdp::plan() {
  open();
  ConversionPlan c;
  auto& keys = c.parts.make<KeyTable>(*model_.map, run_.run, KeyTable::Cells{run_.grid.tp, run_.grid.etp});
  auto& plan =
      c.parts.make<FsdpPlan>(keys, run_, [&](std::vector<ModelParameter>& p) { fsdp_flags_.freeze(p); });
  DcpLayout& layout = plan.layout;
  fsdp_flags_.refuse_unmatched(keys.parameters());
  rules_.refuse_unmatched(layout.key_count(), [&](i64 k) -> std::string_view {
    return layout.key(static_cast<i32>(k)).name.text;
  });
  add_run_objects(layout,
                  {model_.map->model(), run_, options_.iteration.value_or(0), model_.config.max_positions});
  auto& chunks = c.parts.make<PlannedChunks>(layout, plan.table_key);
  if (has_manifest(options_.source)) c.sums = std::make_unique<ReadSums>();
  c.job = std::make_unique<ChunkJob>(import_job(*model_.store, keys, chunks));

  c.sources = {options_.source};
  c.store = model_.store.get();
  c.proof = proof(plan);
  c.twins = {&keys, &layout, plan.table_key};
  FsdpFolder::Beside beside{
      {},
      plan_assets(options_.source,
                  tensor_table_json(model_.map->sources(), model_.expert_layout, model_.map_text))};
  std::string metadata = plan_iteration(c, layout, options_.target, options_.iteration, beside);
  c.identity = identity(metadata, beside);
  c.details.note(cat("        ", counted(run_.grid.world(), "rank"), " (", to_string(run_.grid), "), ",
                     counted(layout.chunk_count(), "chunk"), ", ", human_bytes(c.bytes)));
  return c;
}

Exit HfToFsdp::run() {
  return run_conversion([this] { return plan(); }, "convert", options_, flags_);
}

}  // namespace

Exit convert_hf_to_fsdp(CommandLine& line) { return HfToFsdp(line).run(); }

}  // namespace mckpt
