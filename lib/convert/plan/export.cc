// Plans an export: names, shapes and packing come from the source table of the model, types from the options.
// A tensor of the table that no parameter reads and that copies another one (a tied output layer) is written
// from the tensor that it copies.
#include "convert/plan/export.h"

#include <algorithm>
#include <map>

#include "convert/jobs/chunk_job.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/plan/behind_view.h"
#include "convert/plan/conversion.h"
#include "convert/plan/hf_layout.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/own.h"
#include "convert/plan/setting_identity.h"
#include "convert/source/checkpoint.h"
#include "convert/source/choice.h"
#include "convert/source/identity.h"
#include "convert/source/left_states.h"
#include "convert/source/own_model.h"
#include "convert/source/unsaid_order.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "hf/adapter/adapted_store.h"
#include "hf/assets.h"
#include "hf/config_dtype.h"
#include "hf/model.h"
#include "hf/quantized/assets.h"
#include "io/copy/read_sums.h"
#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "io/output/plan_identity.h"
#include "io/safetensors/layout.h"
#include "io/safetensors/original.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

// The type of every tensor, by its number in the source table.
std::vector<DType> types_of(const CheckpointModel& model, const ExportTypes& how) {
  std::vector<DType> types = model.original_types();
  std::vector<std::optional<DType>> stored = model.stored_types();
  for (std::size_t t = 0; t < types.size(); t++) {
    if (how.kind == ExportTypes::kStored) types[t] = stored[t].value_or(types[t]);
    if (how.kind == ExportTypes::kGiven) types[t] = how.given;
    types[t] = how.rules.of(model.map().sources()[static_cast<i32>(t)].name).value_or(types[t]);
  }
  return types;
}

// A result that is larger than the checkpoint, where nobody asked for the type, is said.
void note_widened(const CheckpointModel& model, const HfLayout& hf, const ExportTypes& types, Notes& notes) {
  if (types.kind != ExportTypes::kOriginal) return;
  const std::vector<std::optional<DType>> stored = model.stored_types();
  std::map<std::pair<DType, DType>, i64> casts;
  for (i32 t : hf.written)
    if (stored[t] && dtype_info(*stored[t]).bits < dtype_info(hf.place(t).dtype).bits) casts[{*stored[t], hf.place(t).dtype}]++;
  for (const auto& [cast, tensors] : casts)
    notes.note(cat("types   ", counted(tensors, "tensor"), " of ", dtype_name(cast.first), " become ",
                   dtype_name(cast.second), ", the type of the model's own folder; `dtype` keep leaves them"));
}

void add_details(Conversion& c, const CheckpointModel& model, const HfLayout& hf, const ExportTypes& types,
                 SideFiles& assets) {
  note_widened(model, hf, types, c.details);
  if (i64 rows = model.setup().vocab_rows, own = model.map().model().vocab; rows > own)
    c.details.note(cat("vocab   the last ", rows - own, " of ", rows, " rows ",
                       rows - own == 1
                           ? "is padding, by vocab_size of config.json, and is not in the result"
                           : "are padding, by vocab_size of config.json, and are not in the result"));
  if (types.kind == ExportTypes::kOriginal) return;
  std::map<DType, i64> items;
  for (i32 t : hf.written) items[hf.place(t).dtype] += hf.place(t).shape.items();
  follow_types(types, model.map().model().dtype, items, assets, c.details);
}

std::string_view type_text(const ExportTypes& types) {
  if (types.kind == ExportTypes::kGiven) return dtype_name(types.given);
  return types.kind == ExportTypes::kStored ? "keep" : "auto";
}

std::string identity_of(const ExportOptions& options, const CheckpointModel& model,
                        const SafetensorsLayout& layout, const SideFiles& assets) {
  std::string headers;
  for (const SafetensorsLayout::File& f : layout.files()) headers += cat(f.name, "\n", f.header);
  headers += layout.index();
  PlanIdentity text("export", MCKPT_VERSION);
  text.set("source_tp", model.run().tensor_ranks.value_or(0));
  text.set("source_etp", model.run().expert_tensor_ranks.value_or(0));
  text.set("max_shard_size", options.max_shard_bytes).set("dtype", type_text(options.types));
  text.set("dtype_rule", options.types.rules.text());
  text.add(kSourceFiles, source_identity(model.store())).add(kMapping, mapping_identity(model.model()));
  return text.add(kBesideFiles, assets.identity()).add(kResult, headers).text();
}

// A base with an adapter in it, with the files of the base around its tensors.
Conversion plan_merged(std::unique_ptr<Store> source, const AdaptedStore& view,
                       const ExportOptions& options) {
  ExportOptions how = options;
  how.source = view.root();
  Conversion c = plan_export_own(std::move(source), how);
  add_adapter(c, view);
  return c;
}

}  // namespace

void follow_types(const ExportTypes& types, std::optional<DType> promised, const std::map<DType, i64>& items,
                  SideFiles& assets, Notes& notes) {
  if (!promised || items.empty()) return;
  DType most = std::ranges::max_element(items, {}, [](const auto& i) { return i.second; })->first;
  if (most == *promised) return;
  if (types.kind == ExportTypes::kGiven && set_config_dtype(assets, most))
    notes.note(cat("config  with dtype ", dtype_name(most), ", as the tensors have it"));
  else
    notes.warn(cat("config.json says ", dtype_name(*promised), ", but most values are ", dtype_name(most),
                   ": transformers loads the tensors as config.json says unless it is given a dtype"));
}

Conversion plan_export(const ExportOptions& options) {
  if (options.max_shard_bytes < 1)
    throw Error(Code::kUsage, "`max_shard_size` must be at least one byte").found(options.max_shard_bytes);
  std::unique_ptr<Store> source = open_store(options.source, options.checkpoint.model.files);
  if (const std::string adapter = adapter_folder_at(options.source, source->opening());
      !adapter.empty() && !source->opening().base)
    throw adapter_alone(Folder(adapter, source->opening()));
  if (const AdaptedStore* view = adapted_view(*source)) return plan_merged(std::move(source), *view, options);
  // A Hugging Face folder is already an export: open_checkpoint() refuses it as a source.
  if ((!source->driver().hf_weights || source->traits.of_verl) && has_own_names(*source))
    return plan_export_own(std::move(source), options);
  refuse_model_dict(options.model_dict, options.source);
  Conversion c;
  auto& model = c.parts.make<CheckpointModel>(open_checkpoint(std::move(source), options.checkpoint));
  c.oddities.push_back({model.store().root(), model.oddities()});
  note_choice(options.source, model.store(), c.notes);
  warn_of_unsaid_order(model.on_disk(), c.notes);
  std::optional<SafetensorsOriginal> original;
  if (options.original_files) original = original_files(model.model());
  auto& hf = c.parts.make<HfLayout>(model.map(), types_of(model, options.types), options.max_shard_bytes,
                                    original ? &*original : nullptr);
  options.types.rules.refuse_unmatched(std::ssize(hf.written), [&](i64 i) { return hf.name(i); });
  c.sums = std::make_unique<ReadSums>();
  auto& tensors = c.parts.make<PlacedTensors>(model.map(), hf.places);
  c.job = std::make_unique<ChunkJob>(export_job(&model.store(), model.keys(), model.chunks(), tensors));

  c.sources = {model.store().root(), model.assets_path()};
  c.opening = options.checkpoint.model.files;
  c.store = &model.store();
  c.proof = export_proof(model.keys(), hf);
  note_constants(model.keys(), c.details);
  c.path = options.target;
  c.format = "Hugging Face safetensors";
  c.layout = &hf.layout;
  c.files = hf.layout.output_files();
  for (const OutputFile& f : c.files) c.bytes += f.bytes;
  SideFiles assets = plan_assets(model.assets_path(), "", c.opening);
  add_map(assets, model.model().map_text);
  if (leave_out_quantization(assets)) note_config_without_quantization(c.details);
  add_details(c, model, hf, options.types, assets);
  c.identity = identity_of(options, model, hf.layout, assets);
  note_left_states(std::ssize(model.left_states()), c.details);
  note_files(hf.layout, options.max_shard_bytes, c.details);
  add_beside(c, {std::move(assets), {}});
  return c;
}

}  // namespace mckpt::impl
