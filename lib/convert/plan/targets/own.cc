// Both results are whole tensors in safetensors files; they differ in what is beside the tensors and in
// whether the model must be complete.
#include "convert/plan/targets/own.h"

#include <algorithm>
#include <map>
#include <set>

#include "convert/jobs/chunk_jobs.h"
#include "convert/jobs/proof.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/open.h"
#include "convert/plan/target.h"
#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/config/dtype.h"
#include "hf/quantized/assets.h"
#include "hf/quantized/config.h"
#include "hf/quantized/recognise.h"
#include "io/file/folder.h"
#include "io/safetensors/layout.h"
#include "io/store/names/torch_names.h"
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

// The details that both results have about their source.
void add_details(Planned& c, const OwnModel& model) {
  if (!model.section.empty())
    c.details.note(cat("names   '", escaped(model.section), "' in front of every name is left out"));
  note_left_out(c.details, model);
  std::vector<i64> all;
  for (const OwnTensor& t : model.tensors)
    if (!t.tied) all.push_back(t.tensor);
  note_shared(c, *model.store, all);
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
void note_config(Planned& c, const OwnModel& model, const WrittenTensors& written, const ExportTypes& types,
                 SideFiles& assets) {
  std::map<DType, i64> items;
  for (i64 t = 0; t < written.size(); t++) items[written.dtype(t)] += written.items(t);
  const std::optional<DType> promised =
      model.folder.config ? model.folder.config->model.dtype : config_dtype(assets);
  follow_types(types, promised, items, assets, c.details);
}

// How a result of the tensors is laid out.
struct LaidOutAs {
  ExportTypes types{};
  i64 max_shard_bytes = 0;  // 0: one file
  bool original_files = false;
};

std::vector<DType> types_of(const OwnModel& model, const ExportTypes& types) {
  std::vector<DType> out;
  for (const OwnTensor& t : model.tensors) out.push_back(type_of(types, t, model.store->dtype(t.tensor)));
  return out;
}

// The common part of all results: the layout, the job and its proof.
class OwnTarget final : public Target {
 public:
  OwnTarget(const Opened& source, std::string_view mode, const LaidOutAs& how)
      : model_(*source.own),
        tensors_(model_, types_of(model_, how.types), how.max_shard_bytes,
                 how.original_files && model_.original ? &*model_.original : nullptr) {
    how.types.rules.refuse_unmatched(tensors_.size(),
                                     [&](i64 i) -> std::string_view { return model_.tensors[i].name; });
    job = std::make_unique<ChunkJob>(tensor_job(*model_.store, tensors_));
    proof = proof_of(model_, tensors_);
    add_details(*this, model_);
    note_uncast(how.types, model_, details);
    format = kHfFormat;
    identify(mode, how.types);
  }
  void write_frame(const FramePlace& to) const override { impl::write_frame(layout(), to); }

  const SafetensorsLayout& layout() const { return tensors_.layout; }
  const WrittenTensors& tensors() const { return tensors_; }
  const OwnModel& model() const { return model_; }

  // A folder, with these files beside the tensors.
  void put_into_folder(const std::string& target, i64 max_shard_bytes, SideFiles assets) {
    path = target;
    set_files(*this, layout().output_files());
    identified.settings->set("max_shard_size", max_shard_bytes);
    note_files(layout(), max_shard_bytes, details);
    add_beside(*this, {std::move(assets), {}});
  }

 private:
  void identify(std::string_view mode, const ExportTypes& types) {
    for (const OwnTensor& t : model_.tensors) identified.mapping += cat(t.tensor, " ", t.tied, "\n");
    identified.settings.emplace(mode, MCKPT_VERSION);
    identified.settings->set("dtype", types.kind == ExportTypes::kGiven ? dtype_name(types.given) : "keep");
    identified.settings->set("dtype_rule", types.rules.text());
    identified.result = headers_of(layout());
  }

  const OwnModel& model_;
  WrittenTensors tensors_;
};

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

std::string headers_of(const SafetensorsLayout& layout) {
  std::string headers;
  for (const SafetensorsLayout::File& f : layout.files()) headers += cat(f.name, "\n", f.header);
  return headers + layout.index();
}

std::unique_ptr<Target> own_folder(const Opened& source, const ExportOptions& options) {
  auto target =
      std::make_unique<OwnTarget>(source, "export of own names",
                                  LaidOutAs{options.types, options.max_shard_bytes, options.original_files});
  Planned& out = *target;
  SideFiles assets = source.assets();
  const bool codes = has_codes(source.store());
  if (codes)
    check_codes(source.store(), options.types, assets.from);
  else if (leave_out_quantization(assets))
    note_config_without_quantization(out.details);
  if (!codes) note_config(out, target->model(), target->tensors(), options.types, assets);
  target->put_into_folder(options.target, options.max_shard_bytes, std::move(assets));
  return target;
}

Conversion plan_export_own(std::unique_ptr<Store> source, const ExportOptions& options) {
  const OwnModelOptions how{.source = options.source,
                            .assets = options.checkpoint.assets,
                            .model_dict = options.model_dict,
                            .accept = options.checkpoint.accept,
                            .threads = options.threads};
  return plan(open_own(std::move(source), how), [&](Opened& opened) { return own_folder(opened, options); });
}

Conversion plan_folder(OwnModel model, std::string_view mode, SideFiles assets,
                       const FolderOptions& options) {
  return plan(opened(std::move(model)), [&](Opened& source) {
    auto target = std::make_unique<OwnTarget>(
        source, mode, LaidOutAs{{.kind = ExportTypes::kStored}, options.max_shard_bytes, true});
    target->put_into_folder(options.target, options.max_shard_bytes, std::move(assets));
    return target;
  });
}

Conversion plan_to_safetensors(const OneFileOptions& options) {
  return plan_one_file(open_store(options.source, options.files), options);
}

Conversion plan_one_file(std::unique_ptr<Store> source, const OneFileOptions& options) {
  refuse_other_name(options.target, false);
  OwnModelOptions how{.source = options.source,
                      .assets = options.assets,
                      .model_dict = options.model_dict,
                      .accept = options.accept,
                      .complete = false,
                      .keep_unlike_heads = true,
                      .threads = options.threads};
  // One file has what was saved: the factors of an adapter would be lost in a sum.
  if (is_wrapped_model(*source)) how.merge_adapter = false, how.keep_names = true;
  return plan(open_own(std::move(source), how), [&](Opened& opened) {
    auto target = std::make_unique<OwnTarget>(opened, "to-safetensors", LaidOutAs{options.types});
    Planned& out = *target;
    if (has_codes(opened.store())) {
      check_codes(opened.store(), options.types, "");
      out.notes.warn(
          "the file has codes and scales: put the model's config.json beside it, which says how large blocks and groups are");
    }
    target->folders = {options.source};
    if (options.assets) target->folders.push_back(*options.assets);
    out.path = options.target, out.single_file = true, out.format = "safetensors";
    set_files(out, {{options.target, target->layout().files()[0].bytes}});
    if (how.keep_names)
      out.notes.note(
          "names   of PEFT and the factors of the adapter are kept: `mckpt export` merges it into its model");
    return target;
  });
}

}  // namespace mckpt::impl
