// Plans an export: names, shapes and packing come from the source table of the model, types from the options.
// A tensor of the table that no parameter reads and that copies another one (a tied output layer) is written
// from the tensor that it copies.
#include "convert/plan/targets/hf.h"

#include <algorithm>
#include <map>

#include "convert/jobs/chunk_jobs.h"
#include "convert/open/checkpoint.h"
#include "convert/open/left_states.h"
#include "convert/open/open.h"
#include "convert/plan/hf_layout.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/target.h"
#include "convert/plan/targets/own.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "hf/config/dtype.h"
#include "hf/folder/assets.h"
#include "hf/model.h"
#include "hf/quantized/assets.h"
#include "io/copy/side_files.h"
#include "io/file/folder.h"
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
    if (stored[t] && dtype_info(*stored[t]).bits < dtype_info(hf.place(t).dtype).bits)
      casts[{*stored[t], hf.place(t).dtype}]++;
  for (const auto& [cast, tensors] : casts)
    notes.note(cat("types   ", counted(tensors, "tensor"), " of ", dtype_name(cast.first), " become ",
                   dtype_name(cast.second),
                   ", the type of the model's own folder; `dtype` keep leaves them"));
}

void add_details(Planned& c, const CheckpointModel& model, const HfLayout& hf, const ExportTypes& types,
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

PlanIdentity settings_of(const ExportOptions& options, const CheckpointModel& model) {
  PlanIdentity text("export", MCKPT_VERSION);
  text.set("source_tp", model.run().tensor_ranks.value_or(0));
  text.set("source_etp", model.run().expert_tensor_ranks.value_or(0));
  text.set("max_shard_size", options.max_shard_bytes).set("dtype", type_text(options.types));
  text.set("dtype_rule", options.types.rules.text());
  return text;
}

// A folder of the tensors of a checkpoint of Megatron.
class HfTarget final : public Target {
 public:
  HfTarget(const Opened& source, const ExportOptions& options);
  void write_frame(const FramePlace& to) const override { impl::write_frame(hf_.layout, to); }

 private:
  std::optional<SafetensorsOriginal> original_;
  HfLayout hf_;
  PlacedTensors tensors_;
};

HfTarget::HfTarget(const Opened& source, const ExportOptions& options)
    : original_(options.original_files ? source.original() : std::nullopt),
      hf_(source.sharded->map(), types_of(*source.sharded, options.types), options.max_shard_bytes,
          original_ ? &*original_ : nullptr),
      tensors_(source.sharded->map(), hf_.places) {
  const CheckpointModel& model = *source.sharded;
  options.types.rules.refuse_unmatched(std::ssize(hf_.written), [&](i64 i) { return hf_.name(i); });
  job = std::make_unique<ChunkJob>(export_job(&model.store(), model.keys(), model.chunks(), tensors_));
  proof = export_proof(model.keys(), hf_);
  note_constants(model.keys(), details);
  path = options.target, format = kHfFormat;
  set_files(*this, hf_.layout.output_files());
  SideFiles assets = source.assets();
  add_map(assets, model.model().map_text);
  if (leave_out_quantization(assets)) note_config_without_quantization(details);
  add_details(*this, model, hf_, options.types, assets);
  identified.settings = settings_of(options, model);
  identified.mapping = mapping_identity(model.model()), identified.result = headers_of(hf_.layout);
  note_left_states(std::ssize(model.left_states()), details);
  note_files(hf_.layout, options.max_shard_bytes, details);
  add_beside(*this, {std::move(assets), {}});
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
  OpenAs how{.source = options.source,
             .how = options.checkpoint,
             .model_dict = options.model_dict,
             .with_table = false,
             .threads = options.threads};
  // A base with an adapter in it, with the files of the base around its tensors.
  if (adapted_view(*source)) how.source = source->root();
  return plan(open(std::move(source), how), [&](Opened& opened) -> std::unique_ptr<Target> {
    if (opened.own) return own_folder(opened, options);
    return std::make_unique<HfTarget>(opened, options);
  });
}

}  // namespace mckpt::impl
