// A checkpoint of Megatron and a model: the checkpoint is opened with the model of the other side, so that
// its keys are made of that side's tensors.
#include <utility>

#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/kinds.h"
#include "convert/open/open.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/model_folder.h"
#include "hf/model.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

// Opens the model with the map file that the tested checkpoint keeps. The config of a training run's
// checkpoint may be in no place but the assets that the tested checkpoint was given.
Opened table_of(const Store& tested, std::unique_ptr<Store> source, const std::string& path,
                const CompareOptions& options) {
  OpenAs how{.source = path, .threads = options.threads};
  how.how.accept = options.opening.accept, how.how.model = options.opening.model;
  how.how.model.kept_map = kept_map(tested);
  how.how.model.leave_unlike_copies = true;
  how.how.model.bad_numbers = BadNumbers::kShow;
  if (is_model_without_config(*source)) {
    how.how.assets = options.opening.assets;
    how.model_dict = options.model_dict;
    if (std::string own = own_assets(tested); !how.how.assets && !own.empty()) how.how.assets = own;
    // Files of safetensors alone are opened as models, and nobody looks around them.
    const bool alone = source->driver().hf_weights && !how.how.assets;
    if (alone) how.how.assets = model_folder_beside(*source, path).path;
  }
  return open_table(std::move(source), how);
}

// There is one checkpoint: the options for the ranks of either side describe it, its own before the other's.
CheckpointOptions opening_of_checkpoint(const CompareOptions& options, bool tested) {
  CheckpointOptions how = options.opening;
  if (options.path_tp && (tested || !how.source_tp))
    how.source_tp = options.path_tp, how.tp_setting = options.path_tp_setting;
  if (options.path_etp && (tested || !how.source_etp))
    how.source_etp = options.path_etp, how.etp_setting = options.path_etp_setting;
  return how;
}

Opened sharded_as(std::unique_ptr<Store> store, const Opened& model, const CheckpointOptions& opening,
                  const RunSetup& setup) {
  OpenAs how{.source = store->root(), .how = opening};
  how.how.records_apart = true;
  return open_sharded(std::move(store), model.table, how, setup);
}

// The folder of a model that was chosen below the path, as of a run that keeps it among its shards: it is
// opened as a model. Adapters and archives are opened by their own paths.
std::string chosen_path(const Store& model, const std::string& path) {
  const bool below = model.driver().hf_folder && !adapted_view(model) &&
                     model.root().starts_with(cat(path, path.ends_with("/") ? "" : "/"));
  return below && is_folder(model.root(), model.opening()) ? model.root() : path;
}

// A map that came with a folder decides which tensor is compared with which.
void tell_map(const HfModel& model, const CompareOptions& options, Sides& sides) {
  if (const std::string warning = map_warning(model); !warning.empty()) tell_names(warning, options, sides);
}

// The folder with the map of its model, whatever its files are.
Opened table_in(std::unique_ptr<Store> folder, const std::string& path, const HfModelOptions& reading) {
  Opened out;
  out.opening = reading.files;
  out.table = std::make_shared<HfModel>(open_hf_folder(folder, path, reading));
  if (!out.table->has_data()) *out.table = open_hf_model(path, std::move(folder), reading);
  out.looked_at = std::move(folder);
  return out;
}

}  // namespace

void tell_names(const std::string& text, const CompareOptions& options, Sides& sides) {
  if (options.counting.all)
    sides.compared_as += cat("; ", text);
  else
    sides.notes.push_back(text);
}

Sides sides_of_import(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                      const CompareOptions& options) {
  Sides out{
      .compared_as =
          "each tensor of the checkpoint with the one that converting the Hugging Face model would write"};
  out.source = table_of(*tested, std::move(source), paths.source, options);
  tell_map(*out.source.table, options, out);
  out.beside.push_back({out.source.beside, out.source.floats_beside});
  const RunSetup setup{0, options.params_dtype.of(out.source.table->map->model())};
  out.tested = sharded_as(std::move(tested), out.source, opening_of_checkpoint(options, true), setup);
  return out;
}

Sides sides_of_export(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                      const CompareOptions& options) {
  if (const DequantizedStore* view = dequantized_view(*tested);
      view && view->decodes() && !options.counting.all)
    throw Error(Code::kUsage,
                "a quantised model is compared with a checkpoint as the source, not as what was made")
        .file(paths.tested)
        .help(cat("give the two the other way round: ", escaped(source->root(), 4096),
                  ", with this folder as the source"));
  HfModelOptions reading = options.opening.model;
  reading.kept_map = kept_map(*source);
  reading.leave_unlike_copies = true;
  Sides out{
      .compared_as =
          "each tensor of the Hugging Face model with the one that exporting the checkpoint would write"};
  const std::string path = chosen_path(*tested, paths.tested);
  out.tested = table_in(std::move(tested), path, reading);
  tell_map(*out.tested.table, options, out);
  out.source =
      sharded_as(std::move(source), out.tested, opening_of_checkpoint(options, false), {0, std::nullopt});
  return out;
}

}  // namespace mckpt::impl
