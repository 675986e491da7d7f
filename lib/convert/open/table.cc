// A model with its weights under the names of a Hugging Face folder, wherever the two are:
//
//   Qwen3-0.6B/                     config.json and safetensors files
//   checkpoint-500/                 pytorch_model_fsdp_0/ of accelerate, config.json beside it
//   global_step100/ + `assets`      files of ZeRO ranks, and the folder of the model
//
// A folder with config.json and safetensors files is a Hugging Face model. Anything else is asked for its
// names: the model's own names mean a training run, and its tensors are the tensors that an export
// of it writes.
#include "convert/open/open.h"

#include <algorithm>
#include <filesystem>

#include "convert/open/choice.h"
#include "convert/open/openers.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/assets.h"
#include "hf/folder/model_folder.h"
#include "hf/model.h"
#include "io/file/container.h"
#include "io/file/folder.h"
#include "io/listing/manifest.h"
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
          "`mckpt convert to-fsdp` makes a checkpoint of Megatron-FSDP of it, `mckpt convert reshard` one of its own format for another grid, and `mckpt export` a Hugging Face folder");
}

// Null if there is nothing that open_store() knows: the error is then the error of a Hugging Face folder,
// unless the folder has several checkpoints.
std::unique_ptr<Store> open_known(const OpenAs& options) {
  try {
    return open_store(options.source, options.how.model.files);
  } catch (const Error& e) {
    bool unknown = e.code() == Code::kUnknownFormat && !options.how.assets &&
                   is_folder(options.source, options.how.model.files);
    if (unknown && checkpoints_below(Folder(options.source, options.how.model.files)).empty()) return nullptr;
    throw;
  }
}

// Whether the store is a checkpoint of a training run, and no Hugging Face folder.
bool is_of_run(const Store& store, const OpenAs& options) {
  if (!has_own_names(store)) {
    refuse_megatron(store, options.source, options.how.model.files);
    return false;
  }
  const bool of_files = format_family(store.format()) == FormatFamily::kSafetensors;
  return !of_files || options.how.assets || store.traits.of_verl;
}

// Weights without a config.json, in a folder or in a file, are a model with the config.json of another
// folder.
HfModel open_with_config(std::unique_ptr<Store>& store, const OpenAs& options) {
  const OpenOptions& files = options.how.model.files;
  try {
    return open_hf_folder(store, options.source, options.how.model);
  } catch (Error& e) {
    if (e.file() == options.how.model.map_file) throw;  // it has its own help
    bool weights = e.code() == Code::kNotFound && is_file(options.source, files);
    if (e.code() == Code::kNotFound && is_folder(options.source, files))
      for (const FolderEntry& f : Folder(options.source, files).entries())
        weights |= f.name.ends_with(".safetensors");
    const std::string around = std::filesystem::path(options.source).parent_path();
    if (weights && is_file(options.source, files) &&
        is_file(cat(around.empty() ? "." : around, "/config.json"), files))
      e.help(cat("name the folder that contains the file: ", escaped(around.empty() ? "." : around)));
    else if (weights)
      e.help("give the folder of the model's config.json as `assets`, or name the folder of a whole model");
    throw;
  }
}

Opened open_folder(std::unique_ptr<Store> store, const OpenAs& options) {
  Opened out;
  out.table = std::make_shared<HfModel>(open_with_config(store, options));
  out.looked_at = std::move(store);
  const HfModel& model = *out.table;
  if (!model.has_data())
    throw Error(Code::kNotFound, "the folder has no weights to convert")
        .file(options.source)
        .expected("safetensors files, or a checkpoint of a training run")
        .help("download the model with its weights");
  out.folders = {model.store->root()};
  out.adapted = adapted_view(*model.store);
  out.has_sums = has_manifest(model.path, {}) || find_inside(model.path, {});
  return out;
}

Opened open_run(std::unique_ptr<Store> store, const OpenAs& options) {
  OwnModelOptions how{.source = options.source,
                      .assets = options.how.assets,
                      .model_dict = options.model_dict,
                      .accept = options.how.accept,
                      .threads = options.threads};
  Opened out = opened(open_own_model(std::move(store), how));
  std::unique_ptr<OwnModel> own = std::move(out.own);
  if (out.adapted) out.notes.note(cat("adapter ", out.adapted->text()));
  out.adapted = nullptr;
  note_left_out(out.left_out, *own);
  note_choice(options.source, *own->store, out.notes);
  out.own_original = std::move(own->original);
  out.beside = std::move(own->beside), out.floats_beside = std::move(own->floats_beside);
  out.folder = std::make_unique<ModelFolder>(own->folder);
  out.table =
      std::make_shared<HfModel>(open_hf_model(own->folder.path, take_written(*own), options.how.model));
  return out;
}

}  // namespace

bool is_model_folder(const std::string& path, const OpenOptions& opening) {
  if (!is_folder(path, opening)) return false;
  Folder folder(path, opening);
  const std::vector<FolderEntry> entries = folder.entries();
  return folder.has_file("config.json") && std::ranges::any_of(entries, [](const FolderEntry& e) {
           return !e.folder && e.name.ends_with(".safetensors");
         });
}

Opened open_table(const OpenAs& how) { return open_table(nullptr, how); }

Opened open_table(std::unique_ptr<Store> store, const OpenAs& given) {
  OpenAs options = given;
  HfModelOptions& model = options.how.model;
  model.threads = options.threads;
  const std::vector<Code>& accept = options.how.accept;
  bool accepted = std::ranges::find(accept, Code::kBadScale) != accept.end();
  if (accepted && model.bad_numbers == BadNumbers::kRefuse) model.bad_numbers = BadNumbers::kReport;
  bool of_run = options.how.assets || !is_model_folder(options.source, model.files);
  if (of_run && !store) store = open_known(options);
  of_run = of_run && store && is_of_run(*store, options);
  if (!of_run && options.how.assets)
    throw Error(Code::kUsage, "`assets` is for checkpoints with the model's own names")
        .file(options.source)
        .help("a Hugging Face folder has its own config.json");
  if (!of_run) refuse_model_dict(options.model_dict, options.source);
  Opened out = of_run ? open_run(std::move(store), options) : open_folder(std::move(store), options);
  out.opening = model.files;
  Notes notes = notes_of(*out.table);
  notes.append(std::move(out.notes));
  out.notes = std::move(notes);
  return out;
}

}  // namespace mckpt::impl
