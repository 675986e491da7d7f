// Which of the ways to open two sides is theirs, by what each of the two is.
#include "convert/compare/sides/sides.h"

#include <set>
#include <vector>

#include "convert/compare/differences/tensors.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/kinds.h"
#include "convert/open/megatron_names.h"
#include "convert/open/open.h"
#include "convert/open/source_model.h"
#include "convert/open/without_effect.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/folder/assets.h"
#include "hf/folder/front_of_names.h"
#include "hf/folder/model_folder.h"
#include "hf/model.h"
#include "io/dcp/dcp.h"
#include "io/file/folder.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

constexpr const char* kOneSideHasObjects =
    "a Hugging Face folder has no objects, such as args and the iteration, to compare with";
constexpr const char* kArgsAreMade =
    "a conversion makes args of the model's config, and copies no other object of the source";

// Throws kUnknownFormat for a single file beside a DCP folder or files of ranks with the names of Megatron:
// only a config.json connects them with the names of a model, and a single file has none.
void refuse_single_file(const Store& model) {
  if (is_folder(model.root(), model.opening())) return;
  throw Error(Code::kUnknownFormat, "a sharded checkpoint cannot be compared with a single file")
      .file(model.root())
      .expected("another sharded checkpoint, or the folder of a Hugging Face model with its config.json")
      .found(cat("a file, ", format_text(model.format())))
      .help("`assets` names the folder with the config.json of the model");
}

// Neither side has the names of Megatron. `table_is_read`: what conversions leave out is looked up in the
// table.
void refuse_unread_settings(const CompareOptions& options, const Store& store, bool table_is_read) {
  std::vector<GivenSetting> given = given_settings(options.opening);
  if (options.path_tp) given.push_back({options.path_tp_setting, true});
  if (options.path_etp) given.push_back({options.path_etp_setting, true});
  refuse_without_effect(given, store, "both sides have", table_is_read);
}

using TensorNames = std::set<std::string, std::less<>>;

// Tensors of a Hugging Face folder that an export does not write: no parameter is made of them, and they
// repeat no other tensor. Empty if the model is not known. `result`: the folder that was made of it, which
// may have a map for both.
TensorNames dropped_tensors(const std::string& path, HfModelOptions options, const Store& result) {
  TensorNames out;
  try {
    if (options.kept_map.empty()) options.kept_map = folder_map_text(Folder(result.root(), result.opening()));
    HfModel model = open_hf_model(path, options);
    std::vector<bool> dropped = model.map->dropped();
    for (i32 t = 0; t < model.map->sources().size(); t++)
      if (dropped[t]) out.emplace(model.map->sources()[t].name);
  } catch (const Error&) {
    // A comparison by name does not need the model.
  }
  return out;
}

// Whether each of the two has tensors that the other one lacks.
bool have_other_names(const Store& one, const Store& other) {
  bool of_one = false, of_other = false;
  for (const TensorDifference& d : tensor_differences(one, other))
    of_one |= d.other < 0, of_other |= d.one < 0;
  return of_one && of_other;
}

// Takes the names of the class where two folders have other names, as conversions of a folder do. Returns the
// sides that are read so.
std::vector<FrontedNames> take_names_of_class(std::unique_ptr<Store>& tested, std::unique_ptr<Store>& source,
                                              const HfModelOptions& options) {
  std::vector<FrontedNames> out;
  if (!have_other_names(*tested, *source)) return out;
  for (std::unique_ptr<Store>* side : {&tested, &source})
    if (FrontedStore named = with_names_of_class(*side, options); named.store) {
      *side = std::move(named.store);
      out.push_back({escaped((*side)->root(), 4096), named.how});
    }
  return out;
}

// Two models' files, or two single files. Types that nobody asked for are said, and do not hide whether the
// values are equal.
Sides sides_of_files(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                     const CompareOptions& options) {
  // Single files are converted tensor by tensor, and lose none.
  const bool folders = !tested->files().empty() && !tested->files()[0].path.empty();
  const bool one_format = tested->format() == source->format();
  const bool no_objects = tested->objects().empty() && source->objects().empty();
  HfModelOptions model = options.opening.model;
  model.leave_unlike_copies = true;
  refuse_unread_settings(options, *source, one_format && folders);
  // The table is read for the names of tensors that are missing alone, but a map that cannot be read is told.
  if (!model.map_file.empty() || model.expert_layout != ExpertLayout::kAuto)
    open_hf_model(paths.source, model);
  std::vector<FrontedNames> of_class;
  if (folders && tested->driver().hf_folder && source->driver().hf_folder)
    of_class = take_names_of_class(tested, source, model);
  Sides out = plain_sides(std::move(tested), std::move(source));
  if (!of_class.empty()) tell_names(fronted_text(of_class), options, out);
  out.any_type = true;
  const Store& result = out.tested_store();
  if (no_objects)
    out.objects_apart = "";
  else if (!one_format)
    out.objects_apart = cat(format_text(result.format()), " and ", format_text(out.source_store().format()),
                            " do not store objects in the same way");
  out.changes.of_tensors = true;
  // A list of differences has what one side alone has, whatever a conversion leaves out.
  if (one_format && folders && !options.counting.all)
    out.changes.left_out = [&result, path = paths.source, model,
                            dropped = std::optional<TensorNames>()](std::string_view name) mutable {
      if (!dropped) dropped = dropped_tensors(path, model, result);  // read when a tensor is missing
      return dropped->contains(name) ? std::string("no conversion keeps them") : std::string();
    };
  return out;
}

// Whether a config says which model a source with names of its own is. Without one no import of it can be
// planned, and two checkpoints are compared by the names of their tensors.
bool is_known_model(const Store& tested, const Store& source, const std::string& path,
                    const CompareOptions& options) {
  return options.opening.assets || !own_assets(tested).empty() ||
         !model_folder_beside(source, path).path.empty();
}

Sides without_objects(Sides sides, const char* reason) {
  sides.objects_apart = reason;
  return sides;
}

}  // namespace

bool is_sharded(const Store& store) { return dcp_dialect(store).has_value() || store.driver().ranks_apart; }

bool is_own_source(const Store& store) { return !store.driver().hf_weights && has_own_names(store); }

bool is_model_without_config(const Store& store) { return !store.driver().hf_folder && has_own_names(store); }

Sides plain_sides(std::unique_ptr<Store> tested, std::unique_ptr<Store> source) {
  const std::string tested_root = tested->root(), source_root = source->root();
  Sides out{.tested = open_plain(std::move(tested), tested_root, {}),
            .source = open_plain(std::move(source), source_root, {}),
            .compared_as = std::string(kComparedByName)};
  return out;
}

Sides open_sides(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                 const CompareOptions& options) {
  if (is_own_beside_model(*tested, *source) || is_own_beside_model(*source, *tested)) {
    refuse_unread_settings(options, *source, false);
    return without_objects(sides_of_own_beside_model(std::move(tested), std::move(source), options),
                           kOneSideHasObjects);
  }
  const bool tested_sharded = is_sharded(*tested), source_sharded = is_sharded(*source);
  if (tested_sharded && has_megatron_names(*tested) && is_model_without_config(*source) &&
      is_known_model(*tested, *source, paths.source, options))
    return without_objects(sides_of_import(std::move(tested), std::move(source), paths, options),
                           kArgsAreMade);
  if (is_own_pair(*tested, *source, options.model_dict, options.counting.all)) {
    refuse_unread_settings(options, *source, false);
    return sides_of_own_pair(std::move(tested), std::move(source), paths, options);
  }
  refuse_model_dict(options.model_dict, paths.source);
  if (has_own_names(*tested) && has_own_names(*source) && tested_sharded && source_sharded)
    refuse_unread_settings(options, *source, false);
  if (tested_sharded && source_sharded)
    return sides_of_megatron(std::move(tested), std::move(source), options);
  if (tested_sharded == source_sharded)
    return sides_of_files(std::move(tested), std::move(source), paths, options);
  refuse_single_file(tested_sharded ? *source : *tested);
  auto open = tested_sharded ? sides_of_import : sides_of_export;
  return without_objects(open(std::move(tested), std::move(source), paths, options), kOneSideHasObjects);
}

}  // namespace mckpt::impl
