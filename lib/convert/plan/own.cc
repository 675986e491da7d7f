// Both results are whole tensors in safetensors files; they differ in what is beside the tensors and in
// whether the model must be complete.
#include "convert/plan/own.h"

#include <algorithm>
#include <map>
#include <set>

#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/jobs/readable_chunks.h"
#include "convert/keys/stored_chunks.h"
#include "convert/plan/behind_view.h"
#include "convert/plan/conversion.h"
#include "convert/plan/setting_identity.h"
#include "convert/source/choice.h"
#include "convert/source/identity.h"
#include "convert/source/own_model.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/config_dtype.h"
#include "hf/quantized/assets.h"
#include "hf/quantized/config.h"
#include "hf/quantized/recognise.h"
#include "io/copy/read_sums.h"
#include "io/file/folder.h"
#include "io/output/plan_identity.h"
#include "io/safetensors/layout.h"
#include "io/safetensors/original.h"
#include "io/store/open/torch_names.h"
#include "io/store/store.h"
#include "io/store/tensor_spec.h"

namespace mckpt::impl {
namespace {

// The type of a tensor of the result. A type for all tensors is one for all floating-point tensors.
DType type_of(const ExportTypes& types, const OwnTensor& tensor, DType stored) {
  if (std::optional<DType> own = types.rules.of(tensor.name)) return *own;
  return types.kind == ExportTypes::kGiven && is_castable(stored) ? types.given : stored;
}

// The tensors of the result as chunks: each is all of a tensor of the store.
class WrittenTensors final : public ChunkList {
 public:
  // `max_shard_bytes` 0: one file. `original`: the layout of these files, if they have the same tensors; may
  // be null.
  WrittenTensors(const OwnModel& model, std::vector<DType> types, i64 max_shard_bytes,
                 const SafetensorsOriginal* original)
      : model_(model), types_(std::move(types)), layout(laid_out(max_shard_bytes, original)) {}

  i64 size() const override { return std::ssize(types_); }
  i32 key(i64 c) const override { return model_.tensors[c].tensor; }
  Box box(i64 c) const override { return {zero_offsets(dims(c).size()), dims(c)}; }
  std::span<const i64> dims(i64 c) const override { return model_.store->dims(key(c)); }
  DType dtype(i64 c) const override { return types_[c]; }
  Place place(i64 c) const override { return {layout.file(c), layout.offset(c), types_[c]}; }
  i32 tensor(i64 c) const override { return static_cast<i32>(c); }
  std::string name(i64 c) const override { return model_.tensors[c].name; }

 private:
  std::vector<TensorSpec> specs() const {
    std::vector<TensorSpec> out;
    for (i64 c = 0; c < size(); c++) out.push_back({model_.tensors[c].name, types_[c], dims(c)});
    return out;
  }

  SafetensorsLayout laid_out(i64 max_shard_bytes, const SafetensorsOriginal* original) const {
    if (original)
      if (std::optional<SafetensorsLayout> same = SafetensorsLayout::like(specs(), *original))
        return *std::move(same);
    try {
      return SafetensorsLayout(specs(), SafetensorsOptions{.max_shard_bytes = max_shard_bytes});
    } catch (Error& e) {
      if (e.code() == Code::kNotHeld)
        e.help("a DCP folder holds tensors of any type and name: mckpt convert to-dcp SRC DST");
      throw;
    }
  }

  const OwnModel& model_;
  std::vector<DType> types_;

 public:
  SafetensorsLayout layout;
};

ProofInput proof_of(const OwnModel& model, const WrittenTensors& written) {
  ProofSide target{written.size(), [&](i64 c) { return written.name(c); },
                   [&](i64 c) { return written.items(c); }};
  ProofInput input{side_of(*model.store), std::move(target)};
  for (auto [copy, of] : model.copies) input.copies.push_back(copy);
  for (i64 c = 0; c < written.size(); c++)
    if (model.tensors[c].tied) input.tied.push_back(c);
  input.left_out = [&model](i64 source) -> ProofInput::LeftOut {
    for (auto [copy, of] : model.copies)
      if (copy == source) return {"the model ties it", of};
    return {};
  };
  return input;
}

// Names the floating-point tensors that one type for all does not change.
void note_uncast(const ExportTypes& types, const OwnModel& model, Notes& notes) {
  if (types.kind != ExportTypes::kGiven) return;
  std::vector<std::string_view> names;
  std::set<std::string_view> kept;
  for (const OwnTensor& t : model.tensors) {
    const DType stored = model.store->dtype(t.tensor);
    if (is_castable(stored) || dtype_info(stored).kind != DTypeKind::kFloat || types.rules.of(t.name))
      continue;
    names.push_back(t.name);
    kept.insert(dtype_name(stored));
  }
  if (!names.empty())
    notes.note(cat("types   ", listed(names, 3), names.size() == 1 ? " stays " : " stay ",
                   listed(std::vector<std::string_view>(kept.begin(), kept.end())),
                   ": `dtype` casts bfloat16, float16, float32 and float64"));
}

// What both results have to say of their source.
void add_details(Conversion& c, const OwnModel& model) {
  if (!model.section.empty())
    c.details.note(cat("names   '", escaped(model.section), "' in front of every name is left out"));
  note_left_out(c.details, model);
  std::vector<i64> all;
  for (const OwnTensor& t : model.tensors)
    if (!t.tied) all.push_back(t.tensor);
  note_shared(c, all);
}

// Codes and scales are copied as they are: no type can be chosen for them, and the config has to declare them
// as they are. `folder` "": no config goes with them.
void check_codes(const Store& store, const ExportTypes& types, const std::string& folder) {
  if (types.kind == ExportTypes::kGiven || !types.rules.empty())
    throw Error(Code::kQuantized, "the tensors are codes and scales, for which no type can be chosen")
        .file(store.root())
        .help("leave `dtype` out, and then: mckpt convert dequantize SRC DST");
  if (folder.empty()) return;
  const QuantizedModel model = recognise(store, read_quant_declaration(Folder(folder, store.opening())));
  if (const Finding* fault = model.contradiction())
    throw Error(fault->code, fault->message).tensor(fault->tensor).file(folder);
}

// config.json is copied as it is, but for the type that it promises. No table has to know the model for that.
void note_config(Conversion& c, const OwnModel& model, const WrittenTensors& written, const ExportTypes& types,
                 SideFiles& assets) {
  std::map<DType, i64> items;
  for (i64 t = 0; t < written.size(); t++) items[written.dtype(t)] += written.items(t);
  const std::optional<DType> promised =
      model.folder.config ? model.folder.config->model.dtype : config_dtype(assets);
  follow_types(types, promised, items, assets, c.details);
}

struct Written {
  const OwnModel& model;
  const WrittenTensors& tensors;
};

// The common part: lays out, and makes the job and its proof.
Written add_tensors(Conversion& c, OwnModel opened, const ExportTypes& types,
                    i64 max_shard_bytes, bool original_files) {
  auto& model = c.parts.make<OwnModel>(std::move(opened));
  c.notes.append(std::move(model.notes));
  c.oddities.push_back({model.store->root(), model.oddities});
  std::vector<DType> kinds;
  for (const OwnTensor& t : model.tensors) kinds.push_back(type_of(types, t, model.store->dtype(t.tensor)));
  auto& written = c.parts.make<WrittenTensors>(model, std::move(kinds), max_shard_bytes,
                                               original_files && model.original ? &*model.original : nullptr);
  types.rules.refuse_unmatched(written.size(),
                               [&](i64 i) -> std::string_view { return model.tensors[i].name; });
  c.job = std::make_unique<ChunkJob>(tensor_job(*model.store, written));
  c.sums = std::make_unique<ReadSums>();
  c.store = model.store.get();
  c.opening = model.store->opening();
  c.proof = proof_of(model, written);
  c.dropped_objects = model.objects;
  c.layout = &written.layout;
  add_details(c, model);
  note_uncast(types, model, c.details);
  return {model, written};
}

PlanIdentity identity_of(std::string_view mode, const Written& w, const ExportTypes& types) {
  std::string headers, tensors;
  for (const SafetensorsLayout::File& f : w.tensors.layout.files()) headers += cat(f.name, "\n", f.header);
  headers += w.tensors.layout.index();
  for (const OwnTensor& t : w.model.tensors) tensors += cat(t.tensor, " ", t.tied, "\n");
  PlanIdentity text(mode, MCKPT_VERSION);
  text.set("dtype", types.kind == ExportTypes::kGiven ? dtype_name(types.given) : "keep");
  text.set("dtype_rule", types.rules.text());
  text.add(kSourceFiles, source_identity(*w.model.store)).add(kMapping, tensors).add(kResult, headers);
  return text;
}

}  // namespace

bool names_other_format(const std::string& target, bool torch) {
  return torch ? target.ends_with(".safetensors") : has_torch_suffix(target);
}

void refuse_other_name(const std::string& target, bool torch) {
  if (!names_other_format(target, torch)) return;
  throw Error(Code::kUsage, cat("the result is a ", torch ? "torch.save" : "safetensors",
                                " file, and its name says another format"))
      .expected(cat("a name such as model.", torch ? "pt" : "safetensors"))
      .found(escaped(target, 4096));
}

void note_files(const SafetensorsLayout& layout, i64 max_shard_bytes, Notes& notes) {
  if (layout.is_original())
    return notes.note("files   with the names, the order and the headers of the model's own folder");
  const i64 larger = max_shard_bytes < 1 ? 0 : std::ranges::count_if(layout.order(), [&](i64 t) {
    return layout.bytes(t) > max_shard_bytes;
  });
  if (larger == 0) return;
  notes.note(cat("files   ", counted(larger, "tensor"), larger == 1 ? " is larger" : " are larger",
                 " than `max_shard_size`, and ", larger == 1 ? "has" : "each has", " a file of its own"));
}

Conversion plan_export_own(std::unique_ptr<Store> source, const ExportOptions& options) {
  Conversion c;
  OwnModelOptions how{.source = options.source,
                      .assets = options.checkpoint.assets,
                      .model_dict = options.model_dict,
                      .accept = options.checkpoint.accept,
                      .threads = options.threads};
  Written w = add_tensors(c, open_own_model(std::move(source), how), options.types, options.max_shard_bytes,
                          options.original_files);
  note_choice(options.source, *w.model.store, c.notes);
  c.sources = {w.model.store->root()};
  // The folder around a checkpoint is no source as a whole: the result may be made beside the checkpoint.
  if (!w.model.folder.of_a_run) c.sources.push_back(w.model.folder.path);
  c.path = options.target;
  c.format = "Hugging Face safetensors";
  c.files = w.tensors.layout.output_files();
  for (const OutputFile& f : c.files) c.bytes += f.bytes;
  SideFiles assets = w.model.folder.files(c.opening);
  const bool codes = has_codes(*w.model.store);
  if (codes)
    check_codes(*w.model.store, options.types, assets.from);
  else if (leave_out_quantization(assets))
    note_config_without_quantization(c.details);
  if (!codes) note_config(c, w.model, w.tensors, options.types, assets);
  PlanIdentity text = identity_of("export of own names", w, options.types);
  text.set("max_shard_size", options.max_shard_bytes).add(kBesideFiles, assets.identity());
  c.identity = text.text();
  note_files(w.tensors.layout, options.max_shard_bytes, c.details);
  add_beside(c, {std::move(assets), {}});
  if (w.model.adapted) add_adapter(c, *w.model.adapted);
  return c;
}

Conversion plan_folder(OwnModel model, std::string_view mode, SideFiles assets,
                       const FolderOptions& options) {
  Conversion c;
  const ExportTypes types{.kind = ExportTypes::kStored};
  Written w = add_tensors(c, std::move(model), types, options.max_shard_bytes, true);
  c.path = options.target;
  c.format = "Hugging Face safetensors";
  c.files = w.tensors.layout.output_files();
  for (const OutputFile& f : c.files) c.bytes += f.bytes;
  PlanIdentity text = identity_of(mode, w, types);
  text.set("max_shard_size", options.max_shard_bytes).add(kBesideFiles, assets.identity());
  c.identity = text.text();
  note_files(w.tensors.layout, options.max_shard_bytes, c.details);
  add_beside(c, {std::move(assets), {}});
  return c;
}

Conversion plan_to_safetensors(const OneFileOptions& options) {
  return plan_one_file(open_store(options.source, options.files), options);
}

Conversion plan_one_file(std::unique_ptr<Store> source, const OneFileOptions& options) {
  refuse_other_name(options.target, false);
  Conversion c;
  OwnModelOptions how{.source = options.source,
                      .assets = options.assets,
                      .model_dict = options.model_dict,
                      .accept = options.accept,
                      .complete = false,
                      .threads = options.threads};
  const AdaptedStore* adapted = adapted_view(*source);  // the model keeps it
  // One file has what was saved: the factors of an adapter would be lost in a sum.
  if (is_wrapped_model(*source)) how.merge_adapter = false, how.keep_names = true;
  Written w = add_tensors(c, open_own_model(std::move(source), how), options.types, 0, false);
  if (has_codes(*w.model.store)) {
    check_codes(*w.model.store, options.types, "");
    c.notes.warn(
        "the file has codes and scales: put the model's config.json beside it, which says how large blocks "
        "and groups are");
  }
  c.sources = {options.source};
  if (options.assets) c.sources.push_back(*options.assets);
  c.path = options.target;
  c.single_file = true;
  c.format = "safetensors";
  c.bytes = w.tensors.layout.files()[0].bytes;
  c.files = {{options.target, c.bytes}};
  c.identity = identity_of("to-safetensors", w, options.types).text();
  if (adapted) add_adapter(c, *adapted);
  if (how.keep_names)
    c.notes.note(
        "names   of PEFT and the factors of the adapter are kept: `mckpt export` merges it into its model");
  return c;
}

}  // namespace mckpt::impl
