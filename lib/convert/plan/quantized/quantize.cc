// The view has all tensors of the result, so planning is laying them out, and writing the config.
#include "convert/plan/quantized/quantize.h"

#include <algorithm>

#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "convert/plan/conversion.h"
#include "convert/plan/model_proofs.h"
#include "convert/plan/quantized/exported_values.h"
#include "convert/plan/source_identity.h"
#include "convert/plan/targets/hf.h"
#include "convert/plan/targets/own.h"
#include "core/base/error.h"
#include "hf/folder/assets.h"
#include "hf/model.h"
#include "hf/quantized/config.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/quantized_store.h"
#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/safetensors/original.h"
#include "io/store/soundness.h"

namespace mckpt::impl {
namespace {

constexpr const char *kConfig = "config.json", *kModelOptConfig = "hf_quant_config.json";

std::unique_ptr<Store> open_sound(const std::string& path, const OpenOptions& opening) {
  std::unique_ptr<Store> store = open_values(path, opening);
  if (format_family(store->format()) != FormatFamily::kSafetensors)
    throw Error(Code::kUnknownFormat, "the source is not a Hugging Face folder")
        .file(path)
        .found(format_text(store->format()))
        .help("mckpt export SRC HF_DIR   makes one of a checkpoint");
  require_sound(store->findings(), store->root());
  if (std::optional<Error> codes = undecoded_codes(*store)) throw codes->file(path);
  return store;
}

std::unique_ptr<Store> open_like(const QuantizeOptions& options) {
  if (options.like.empty())
    throw Error(Code::kUsage, "the quantised model that the result is to be like is not given")
        .expected("a folder with its codes and scales")
        .found("no `like`")
        .help("`like` HF_DIR   the folder of the quantised model");
  std::unique_ptr<Store> store = open_sound(options.like, options.files);
  if (const DequantizedStore* view = dequantized_view(*store); view && view->decodes()) return store;
  throw Error(Code::kUsage, "the model that the result is to be like is not quantised")
      .file(options.like)
      .expected("codes with scales, such as w.weight of FP8 and w.weight_scale_inv")
      .found("plain numbers alone")
      .help("name the published folder; mckpt inspect HF_DIR says what is quantised");
}

bool has_weights(const std::string& path, const OpenOptions& opening) {
  const std::vector<FolderEntry> entries = Folder(path, opening).entries();
  return std::ranges::any_of(
      entries, [](const FolderEntry& e) { return !e.folder && e.name.ends_with(".safetensors"); });
}

std::string text_in(const Folder& folder, const char* name) {
  return with_file(cat(folder.path(), "/", name), [&] {
    std::string text = json_text(folder.open_file(name));
    if (check_json(text, JsonNumbers::kPython) != JsonType::kObject)
      throw Error(Code::kBadJson, "the file is not a JSON object");
    return text;
  });
}

// The files beside the weights, with a config that declares what they are. A config that differs from the
// pattern's only in the declaration becomes the pattern's own, byte for byte.
SideFiles assets_of(const QuantizeOptions& options, const std::string& assets, const std::string& entry) {
  SideFiles files = plan_assets(assets, "", options.files);
  std::erase_if(files.copies,
                [](const SideFile& f) { return f.name == kConfig || f.name == kModelOptConfig; });
  Folder from(assets, options.files);
  std::string config = text_in(from, kConfig), made = config;
  if (options.like.empty()) {
    made = with_quantization(config, entry);
  } else {
    Folder pattern(options.like, options.files);
    std::string theirs = text_in(pattern, kConfig), declared = quantization_text(theirs);
    if (without_quantization(config) == without_quantization(theirs))
      made = theirs;
    else if (!declared.empty())
      made = with_quantization(config, declared);
    if (pattern.has_file(kModelOptConfig))
      files.texts.emplace(kModelOptConfig, text_in(pattern, kModelOptConfig));
  }
  files.texts.emplace(kConfig, std::move(made));
  return files;
}

std::unique_ptr<QuantizedStore> view_of(const QuantizeOptions& options, std::unique_ptr<Store> source) {
  switch (options.to) {
    case QuantizeTo::kLikeSource:
      return QuantizedStore::like(std::move(source), open_like(options));
    case QuantizeTo::kFp8Block:
      return QuantizedStore::fp8_blocks(std::move(source));
    case QuantizeTo::kMxfp4:
      return QuantizedStore::mxfp4(std::move(source));
  }
  return nullptr;
}

// `assets`: the folder of config and tokenizer. `identity`: of the source, beyond its files.
Conversion plan_of(const QuantizeOptions& options, std::unique_ptr<Store> source, const std::string& assets,
                   std::string_view identity) {
  const DequantizedStore* decoded = dequantized_view(*source);
  const std::string decoded_text = decoded && decoded->decodes() ? quantized_text(*decoded) : "";
  std::unique_ptr<QuantizedStore> view = view_of(options, std::move(source));
  OwnModel model;
  const i64 quantized = view->quantized(), values = view->values().tensor_count();
  std::vector<i64> made;
  for (i64 t = 0; t < view->tensor_count(); t++)
    if (view->is_made(t)) made.push_back(t);
  const bool like = options.to == QuantizeTo::kLikeSource;
  std::string entry = like ? "" : view->config_entry();
  for (i64 t = 0; t < view->tensor_count(); t++)
    model.tensors.push_back({std::string(view->name(t)), static_cast<i32>(t)});
  if (like && options.original_files) model.original = original_files(view->pattern());
  const QuantizedStore& quantised = *view;
  const std::vector<std::string> ragged = view->ragged();
  model.store = std::move(view);
  std::string mode = cat("quantize ", static_cast<int>(options.to), " ", identity);
  if (like) mode += source_identity(*open_store(options.like, options.files)).text();
  Conversion c = plan_folder(std::move(model), mode, assets_of(options, assets, entry),
                             {.target = options.target, .max_shard_bytes = options.max_shard_bytes});
  c.proof.quantized = std::move(made);
  c.proof.source.name = [&quantised](i64 t) { return std::string(quantised.made_of(t)); };
  c.behind = BehindView{values};
  c.sources = {options.source, assets};
  if (like) c.sources.push_back(options.like);
  if (decoded) c.details.note(cat("decoded ", decoded_text, ", before it is quantised"));
  c.details.note(cat(
      "coded   ", counted(quantized, "tensor"),
      like ? "; blocks with the values of the quantised model keep its scale, others get a new one" : ""));
  if (!ragged.empty())
    c.details.warn(cat(
        counted(std::ssize(ragged), "tensor"),
        " with rows or columns that are no multiple of 128, so that blocks at the end are smaller: ",
        listed(ragged),
        "; DeepSeek has such matrices too, and kernels for blocks read them, but transformers (5.23) does not decode them"));
  return c;
}

}  // namespace

QuantizeTo quantize_scheme(std::string_view word, std::string_view option, bool has_like) {
  constexpr const char* kWords = "fp8-block, mxfp4 or like-source";
  if (word == "mxfp4") return QuantizeTo::kMxfp4;
  if (word == "fp8-block") return QuantizeTo::kFp8Block;
  if (word == "like-source" || (word.empty() && has_like)) return QuantizeTo::kLikeSource;
  if (word.empty()) throw Error(Code::kUsage, cat(option, " is missing")).expected(kWords);
  throw Error(Code::kUsage, cat(option, " does not name a scheme that mckpt writes"))
      .expected(kWords)
      .found(escaped(word))
      .help(
          "INT4, NVFP4, MXFP8 and FP8 with a scale for a row or a tensor are written by like-source only, with the values that a model of that kind has; llm-compressor and ModelOpt choose new scales for them");
}

Conversion plan_quantize(const QuantizeOptions& options) {
  if (!options.like.empty() && options.to != QuantizeTo::kLikeSource)
    throw Error(Code::kUsage, "a model that the result is to be like belongs to the scheme like-source")
        .found(cat(escaped(options.like, 4096), " with another scheme"));
  return plan_of(options, open_sound(options.source, options.files), options.source, "");
}

Conversion plan_quantized_export(const ExportOptions& options, QuantizeTo to) {
  const std::optional<std::string>& given = options.checkpoint.assets;
  if (to == QuantizeTo::kLikeSource && (!given || !has_weights(*given, options.checkpoint.model.files)))
    throw Error(Code::kUsage, "the result is to be like a quantised model, whose weights are not given")
        .expected("the folder of that model with its safetensors files, as `assets`")
        .found(given ? cat(escaped(*given, 4096), ", which has none")
                     : "no `assets`: a checkpoint keeps config and tokenizer only")
        .help(
            "`assets` HF_DIR   the folder of the quantised model, as it was published; fp8-block and mxfp4 need none");
  if (options.types.kind == ExportTypes::kGiven || !options.types.rules.empty())
    throw Error(Code::kUsage, "data types cannot be chosen for a quantised result");
  std::unique_ptr<Store> source = open_store(options.source, options.checkpoint.model.files);
  if (is_of_model(*source))
    throw Error(Code::kUsage, "only checkpoints of Megatron are quantised by an export")
        .file(options.source)
        .found(format_text(source->format()))
        .help("mckpt export SRC HF_DIR, and then mckpt convert quantize HF_DIR DST");
  Opened opened = open_sharded(std::move(source), {.source = options.source, .how = options.checkpoint});
  std::vector<DType> types = opened.sharded->original_types();
  auto values = std::make_unique<ExportedValues>(std::move(opened), types);
  const ExportedValues& exported = *values;
  const CheckpointModel& model = *exported.opened().sharded;
  // The tensors that are quantised are the tensors of an export, which is proved as every other.
  const ChunkJob job = export_job(&model.store(), model.keys(), model.chunks(), exported.tensors());
  ProofInput proof = export_proof(model.keys(), exported.layout());
  proof.threads = options.threads;
  prove(job, proof);
  const std::string assets = model.assets_path();
  QuantizeOptions how{.source = options.source,
                      .target = options.target,
                      .to = to,
                      .like = to == QuantizeTo::kLikeSource ? *given : "",
                      .max_shard_bytes = options.max_shard_bytes,
                      .original_files = options.original_files,
                      .files = options.checkpoint.model.files};
  std::string identity = cat(source_identity(model.store()).text(), mapping_identity(model.model()));
  std::vector<Oddities> damage = exported.opened().damage;
  Conversion c = plan_of(how, std::move(values), assets, identity);
  c.oddities.insert(c.oddities.end(), damage.begin(), damage.end());
  return c;
}

}  // namespace mckpt::impl
