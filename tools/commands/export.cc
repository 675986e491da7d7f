// mckpt export: a sharded checkpoint into a Hugging Face folder. `convert fsdp-to-hf` is the same.
#include <algorithm>
#include <map>

#include "convert/jobs/chunk_jobs.h"
#include "convert/plan/identity.h"
#include "hf/assets.h"
#include "io/pickle/value.h"
#include "io/safetensors/layout.h"
#include "tools/checkpoint_model.h"
#include "tools/commands/commands.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/convert_options.h"
#include "tools/options/layout_flags.h"
#include "tools/render/findings.h"
#include "tools/run_conversion.h"

namespace mckpt {
namespace {

class Export {
 public:
  Export(CommandLine& line, const char* command) : flags_(line.flags()), command_(command) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void lay_out();
  std::vector<DType> types(const DtypeRules& rules) const;  // by tensor of the source table
  ProofInput proof() const;
  ConversionPlan plan();
  void add_details(ConversionPlan& c) const;
  std::string identity() const;

  const GlobalFlags& flags_;
  std::string command_;
  ConvertOptions options_;
  CheckpointModelFlags model_flags_;
  std::string dtype_ = "auto";
  ValueFlags rules_{"none"};
  i64 max_shard_bytes_ = 5'000'000'000;

  CheckpointModel model_;
  std::vector<i32> written_;  // tensors of the source table, in the order of the layout
  std::optional<SafetensorsLayout> layout_;
  TensorPlaces places_;
  SideFiles assets_;
};

void Export::parse(CommandLine& line) {
  options_.declare(line, "a checkpoint: a run's folder, or one iteration of it",
                   "the Hugging Face folder to make");
  options_.declare_resume(line);
  model_flags_.declare(line);
  line.option(
      "--dtype TYPE", dtype_,
      "data type of the tensors: auto (as in the original model), keep (as stored), bf16, fp16 or fp32");
  rules_.declare_rules(line);
  options_.declare_casts(line);
  line.bytes("--max-shard-size", max_shard_bytes_, "most bytes of tensors in one file; by default 5GB");
  line.description(
      "Writes a Hugging Face folder: the tensors under their original names, in their original packing and "
      "data types, and config, tokenizer and code byte for byte. Names, packing and these files are taken "
      "from --assets, or from the checkpoint itself if mckpt made it.");
  line.description(
      "The checkpoint may be of any grid, fsdp_dtensor or torch_dist. Under mpirun the ranks share the "
      "work.");
  line.example("mckpt export ckpt out_hf");
  line.example("mckpt export ckpt/iter_0001000 out_hf --assets Qwen3-30B-A3B --max-shard-size 10GB");
  line.parse();
  options_.check();
  if (max_shard_bytes_ < 1)
    throw Error(Code::kUsage, "--max-shard-size is at least one byte").found("--max-shard-size 0");
}

std::vector<DType> Export::types(const DtypeRules& rules) const {
  std::vector<DType> types = model_.original_types();
  std::vector<std::optional<DType>> stored = model_.stored_types();
  for (std::size_t t = 0; t < types.size(); t++) {
    if (dtype_ == "keep")
      types[t] = stored[t].value_or(types[t]);
    else if (dtype_ != "auto")
      types[t] = parameter_type(dtype_, "--dtype");
    std::string_view name = model_.map().sources()[static_cast<i32>(t)].name;
    types[t] = rules.of(name).value_or(types[t]);
  }
  return types;
}

void Export::lay_out() {
  const SourceTable& tensors = model_.map().sources();
  std::vector<Shape> shapes = model_.map().source_shapes();
  std::vector<bool> computed(static_cast<std::size_t>(tensors.size()));
  for (const UnreadTensor& u : model_.map().unread())
    if (u.of < 0) computed[static_cast<std::size_t>(u.tensor)] = true;
  DtypeRules rules = rules_.dtype_rules();
  std::vector<DType> types = this->types(rules);
  std::vector<TensorSpec> specs;
  for (i32 t = 0; t < tensors.size(); t++) {
    if (computed[static_cast<std::size_t>(t)]) continue;
    written_.push_back(t);
    std::size_t i = static_cast<std::size_t>(t);
    specs.push_back({tensors[t].name, types[i], shapes[i].dims()});
  }
  rules.refuse_unmatched(std::ssize(specs),
                         [&](i64 i) -> std::string_view { return specs[static_cast<std::size_t>(i)].name; });
  layout_.emplace(specs, SafetensorsOptions{.max_shard_bytes = max_shard_bytes_});
  places_.tensors.resize(static_cast<std::size_t>(tensors.size()));
  for (std::size_t i = 0; i < specs.size(); i++) {
    i64 at = static_cast<i64>(i);
    places_.tensors[static_cast<std::size_t>(written_[i])] = {layout_->file(at), layout_->offset(at),
                                                              specs[i].dtype, Shape(specs[i].dims)};
  }
}

ProofInput Export::proof() const {
  const SourceTable& tensors = model_.map().sources();
  auto items = [this](i64 t) {
    const TensorPlaces::Place& place = places_.tensors[static_cast<std::size_t>(t)];
    return place.file < 0 ? -1 : place.shape.items();
  };
  ProofInput input{
      side_of(model_.keys()),
      {tensors.size(), [&](i64 t) { return std::string(tensors[static_cast<i32>(t)].name); }, items}};
  for (const UnreadTensor& u : model_.map().unread())
    if (u.of >= 0) input.repeats.push_back(u.tensor);
  return input;
}

// config.json is copied as it is, and programs that go by its type cast what they load.
void Export::add_details(ConversionPlan& c) const {
  if (i64 rows = model_.setup().vocab_rows, own = model_.map().model().vocab; rows > own)
    c.details.note(cat("vocab   the last ", rows - own, " of ", rows,
                       " rows are padding by vocab_size of config.json, and not in the result"));
  std::optional<DType> promised = model_.map().model().dtype;
  std::map<DType, i64> items;
  for (i32 t : written_) {
    const TensorPlaces::Place& place = places_.tensors[static_cast<std::size_t>(t)];
    items[place.dtype] += place.shape.items();
  }
  if (!promised || items.empty()) return;
  DType most = std::ranges::max_element(items, {}, [](const auto& i) { return i.second; })->first;
  if (most != *promised && dtype_ != "auto")
    c.details.warn(cat("config.json says ", dtype_name(*promised), ", the tensors are ", dtype_name(most),
                       ": transformers loads them as what config.json says unless told otherwise"));
}

std::string Export::identity() const {
  PlanIdentity text("export");
  text.add(source_identity(model_.store())).add(mapping_identity(model_.model()));
  text.add(cat(model_.run().tensor_ranks.value_or(0), " ", model_.run().expert_tensor_ranks.value_or(0)));
  for (const SafetensorsLayout::File& f : layout_->files()) text.add(f.name).add(f.header);
  return text.add(assets_.identity()).text();
}

ConversionPlan Export::plan() {
  model_.open(options_.source, model_flags_, flags_);
  lay_out();
  ConversionPlan c;
  c.sums = std::make_unique<ReadSums>();
  auto& tensors = c.parts.make<PlacedTensors>(model_.map(), places_);
  c.job = std::make_unique<ChunkJob>(export_job(&model_.store(), model_.keys(), model_.chunks(), tensors));
  assets_ = plan_assets(model_.assets_path(), "");

  c.sources = {model_.store().root(), model_.assets_path()};
  c.store = &model_.store();
  c.proof = proof();
  c.path = options_.target;
  c.layout = &*layout_;
  c.files = layout_->output_files();
  for (const OutputFile& f : c.files) c.bytes += f.bytes;
  c.identity = identity();
  add_details(c);
  add_beside(c, {assets_, {}});
  return c;
}

Exit Export::run() {
  return run_conversion([this] { return plan(); }, command_, options_, flags_);
}

}  // namespace

Exit export_command(CommandLine& line) { return Export(line, "export").run(); }
Exit convert_fsdp_to_hf(CommandLine& line) { return Export(line, "convert").run(); }

}  // namespace mckpt
