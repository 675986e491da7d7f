// A folder with config.json and safetensors files is a Hugging Face model. Anything else is asked for its
// names: the model's own ones are those of a training run.
#include "convert/source/import_source.h"

#include <algorithm>

#include "convert/source/choice.h"
#include "convert/source/own_model.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "hf/assets.h"
#include "io/copy/side_files.h"
#include "io/file/container.h"
#include "io/file/folder.h"
#include "io/output/manifest.h"
#include "io/store/open/checkpoints_below.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// pre: the tensors have not the names of a model. A folder with config.json is asked as one all the same.
void refuse_megatron(const Store& store, const std::string& path, const OpenOptions& opening) {
  if (is_folder(path, opening) && Folder(path, opening).has_file("config.json")) return;
  throw Error(Code::kUnknownFormat, "this is a checkpoint of Megatron, and not a model with names of its own")
      .file(store.root())
      .expected("a Hugging Face model, or a checkpoint with its names")
      .found(format_text(store.format()))
      .help(
          "`mckpt convert to-fsdp` makes a checkpoint of Megatron-FSDP of it, `mckpt convert reshard` one of its "
          "own format for another grid, and `mckpt export` a Hugging Face folder");
}

// Null if there is nothing that open_store() knows: the error is then that of a Hugging Face folder, unless
// the folder has several checkpoints.
std::unique_ptr<Store> open_checkpoint_of_run(const ImportSourceOptions& options) {
  std::unique_ptr<Store> store;
  try {
    store = open_store(options.source, options.model.files);
  } catch (const Error& e) {
    bool unknown =
        e.code() == Code::kUnknownFormat && !options.assets && is_folder(options.source, options.model.files);
    if (unknown && checkpoints_below(Folder(options.source, options.model.files)).empty()) return nullptr;
    throw;
  }
  if (!has_own_names(*store)) {
    refuse_megatron(*store, options.source, options.model.files);
    return nullptr;
  }
  bool of_files = format_family(store->format()) == FormatFamily::kSafetensors;
  return of_files && !options.assets && !store->traits.of_verl ? nullptr : std::move(store);
}

// Weights without a config.json are a model with that of another folder.
HfModel open_with_config(const ImportSourceOptions& options) {
  try {
    return open_hf_model(options.source, options.model);
  } catch (Error& e) {
    const bool lone = e.code() == Code::kNotAFolder && options.source.ends_with(".safetensors");
    bool weights = false;
    if (e.code() == Code::kNotFound && is_folder(options.source, options.model.files))
      for (const FolderEntry& f : Folder(options.source, options.model.files).entries())
        weights |= f.name.ends_with(".safetensors");
    if (lone)
      e.help("name the folder that contains the file, or give the folder of the model's config.json as `assets`");
    if (weights)
      e.help("give the folder of the model's config.json as `assets`, or name the folder of a whole model");
    throw;
  }
}

ImportSource open_folder(const ImportSourceOptions& options) {
  ImportSource out{open_with_config(options)};
  if (!out.model.has_data())
    throw Error(Code::kNotFound, "the folder has no weights to convert")
        .file(options.source)
        .expected("safetensors files, or a checkpoint of a training run")
        .help("download the model with its weights");
  return out;
}

ImportSource open_run(std::unique_ptr<Store> store, const ImportSourceOptions& options) {
  OwnModelOptions how{.source = options.source,
                      .assets = options.assets,
                      .model_dict = options.model_dict,
                      .accept = options.accept,
                      .threads = options.threads};
  OwnModel own = open_own_model(std::move(store), how);
  ImportSource::OfRun run;
  run.folder = own.folder;
  run.damage.push_back({own.store->root(), std::move(own.oddities)});
  run.notes = std::move(own.notes);
  if (own.adapted) run.notes.note(cat("adapter ", own.adapted->text()));
  run.objects = own.objects;
  run.original = std::move(own.original);
  note_left_out(run.left_out, own);
  note_choice(options.source, *own.store, run.notes);
  return {open_hf_model(own.folder.path, take_written(own), options.model), std::move(run)};
}

}  // namespace

std::vector<std::string> ImportSource::folders() const {
  std::vector<std::string> out{model.store->root()};
  // The folder around a checkpoint is no source as a whole: the result may be made beside the checkpoint.
  if (run && !run->folder.of_a_run) out.push_back(run->folder.path);
  return out;
}

std::optional<SafetensorsOriginal> ImportSource::original() const {
  return run ? run->original : original_files(model);
}

SideFiles ImportSource::assets(std::string_view tensor_table) const {
  if (!run) {
    SideFiles files = plan_assets(model.path, tensor_table, model.opening);
    if (const AdaptedStore* view = model.store ? adapted_view(*model.store) : nullptr)
      amend(files, view->amended());
    return files;
  }
  SideFiles files = run->folder.files(model.opening);
  if (!tensor_table.empty()) files.texts.emplace(kTensorTableName, tensor_table);
  return files;
}

bool ImportSource::has_sums() const {
  return run || has_manifest(model.path, {}) || find_inside(model.path, {});
}

bool is_model_folder(const std::string& path, const OpenOptions& opening) {
  if (!is_folder(path, opening)) return false;
  Folder folder(path, opening);
  const std::vector<FolderEntry> entries = folder.entries();
  return folder.has_file("config.json") && std::ranges::any_of(entries, [](const FolderEntry& e) {
           return !e.folder && e.name.ends_with(".safetensors");
         });
}

ImportSource open_import_source(const ImportSourceOptions& given) {
  ImportSourceOptions options = given;
  bool accepted = std::ranges::find(options.accept, Code::kBadScale) != options.accept.end();
  if (accepted && options.model.bad_numbers == BadNumbers::kRefuse)
    options.model.bad_numbers = BadNumbers::kReport;
  if (options.assets || !is_model_folder(options.source, options.model.files))
    if (std::unique_ptr<Store> store = open_checkpoint_of_run(options))
      return open_run(std::move(store), options);
  if (options.assets)
    throw Error(Code::kUsage, "`assets` is for checkpoints with the model's own names")
        .file(options.source)
        .help(
            "a Hugging Face folder has its own config.json");
  refuse_model_dict(options.model_dict, options.source);
  return open_folder(options);
}

}  // namespace mckpt::impl
