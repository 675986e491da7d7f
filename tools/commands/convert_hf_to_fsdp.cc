// convert hf-to-fsdp: a Hugging Face model into the fsdp_dtensor checkpoint that a Megatron run of any grid
// would have saved.
#include <algorithm>

#include "convert/compare/chunk_twins.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/holding_reader.h"
#include "convert/objects/megatron_args.h"
#include "io/verify/manifest.h"
#include "runtime/comm/world.h"
#include "tools/checkpoint_model.h"
#include "tools/commands/convert_modes.h"
#include "tools/fsdp_output.h"
#include "tools/hf_model.h"
#include "tools/options/convert_options.h"
#include "tools/options/layout_flags.h"
#include "tools/proved_plan.h"
#include "tools/render/convert_report.h"
#include "tools/staged_copy.h"

namespace mckpt {
namespace {

class HfToFsdp {
 public:
  explicit HfToFsdp(CommandLine& line) : flags_(line.flags()) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void open();
  ProofInput proof(const FsdpPlan& plan) const;
  std::string plan_text(const FsdpOutput& output) const;
  void warn_of_twins(const KeyTable& keys, const FsdpPlan& plan) const;

  const GlobalFlags& flags_;
  ConvertOptions options_;
  HfModelFlags model_flags_;
  GridFlags grid_flags_;
  FsdpFlags fsdp_flags_;
  ValueFlags values_{"none"};
  DtypeRules rules_;

  HfModel model_;
  FsdpRun run_;
  FsdpFolder::Beside beside_;
  ConvertReport report_;
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
  beside_.assets =
      plan_assets(options_.source, tensor_table_json(map.sources(), model_.expert_layout, model_.map_text));
}

ProofInput HfToFsdp::proof(const FsdpPlan& plan) const {
  ProofInput input{side_of(*model_.store), side_of(plan.layout)};
  for (const UnreadTensor& u : model_.map->unread())
    (u.of >= 0 ? input.copies : input.dropped).push_back(u.tensor);
  return input;
}

std::string HfToFsdp::plan_text(const FsdpOutput& output) const {
  PlanText plan("hf-to-fsdp");
  plan.add(source_identity(*model_.store));
  plan.add(beside_.identity());
  plan.add(mapping_identity(model_));
  plan.add(run_.run.params_dtype ? dtype_name(*run_.run.params_dtype) : "none");
  plan.add(output.metadata_sha256);
  return plan.text();
}

void HfToFsdp::warn_of_twins(const KeyTable& keys, const FsdpPlan& plan) const {
  try {
    for (const ChunkTwins& t : chunk_twins(keys, plan.layout, plan.table_key, report_.output, 10))
      warn(flags_, cat("experts hold the same bytes: ", escaped(t.first), " and ", escaped(t.second)));
  } catch (const Error& e) {  // the result is published, and no worse for it
    warn(flags_, cat("experts were not compared with each other: ", e.what()));
  }
}

Exit HfToFsdp::run() {
  if (!follow_rank_0(options_)) return Exit::kOk;
  open();
  KeyTable keys(*model_.map, run_.run, {run_.grid.tp, run_.grid.etp});
  FsdpPlan plan(keys, run_, [&](std::vector<ModelParameter>& p) { fsdp_flags_.freeze(p); });
  fsdp_flags_.refuse_unmatched(keys.parameters());
  rules_.refuse_unmatched(plan.layout.key_count(), [&](i64 k) -> std::string_view {
    return plan.layout.key(static_cast<i32>(k)).name.text;
  });
  add_run_objects(plan.layout,
                  {model_.map->model(), run_, options_.iteration.value_or(0), model_.config.max_positions});
  PlannedChunks chunks(plan.layout, plan.table_key);
  ReadSums sums;
  bool summed = has_manifest(options_.source);
  ChunkJob job = import_job(*model_.store, keys, chunks);

  prove_plan(job, proof(plan), options_, report_);
  FsdpOutput output = plan_output(plan.layout, options_, options_.iteration, report_, flags_);
  note(flags_, cat("        ", counted(run_.grid.world(), "rank"), " (", to_string(run_.grid), "), ",
                   counted(plan.layout.chunk_count(), "chunk"), ", ", human_bytes(report_.bytes)));
  StagedCopy copy{report_.output,
                  plan_text(output),
                  {options_.source},
                  output.files,
                  job,
                  [&](OutputFiles& out, const std::string& to) {
                    output.folder.write_rest(plan.layout, out, to, beside_);
                  },
                  beside_,
                  summed ? &sums : nullptr,
                  model_.store.get()};
  copy.run = &output.folder;
  return carry_out(copy, report_, "convert", options_, flags_, [&] { warn_of_twins(keys, plan); });
}

}  // namespace

Exit convert_hf_to_fsdp(CommandLine& line) { return HfToFsdp(line).run(); }

}  // namespace mckpt
