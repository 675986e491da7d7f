// Checkpoints with the model's own names:
//
//   a Hugging Face folder and such a checkpoint, either of them tested     under the names of the folder
//   such checkpoints of two formats or sections, or one and a file         under the names that both have, or
//                                                                          where these differ, the folder's names
//
// Only the tensors of the model are compared; what is beside them is named.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "convert/compare/differences/tensors.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/kinds.h"
#include "convert/open/open.h"
#include "convert/open/without_wrappers.h"
#include "convert/own/names.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/tied_names.h"
#include "io/dcp/dcp.h"
#include "io/file/folder.h"
#include "io/store/names/torch_names.h"
#include "io/store/soundness.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

bool has_config(const Store& folder) {
  return Folder(folder.root(), folder.opening()).has_file("config.json");
}

OwnModelOptions opening_of(const std::string& source, const CompareOptions& options) {
  return {.source = source,
          .assets = options.opening.assets,
          .model_dict = options.model_dict,
          .accept = options.opening.accept,
          .apart = is_of_records,
          .complete = false,
          .keep_unlike_heads = true,
          .threads = options.threads};
}

using Names = std::set<std::string, std::less<>>;

// Whether the files of the folder say which tensors the model has.
bool lists_tensors(const Store& checkpoint, const std::string& folder) {
  const ModelFolder model = find_model_folder(checkpoint, checkpoint.root(), folder);
  return !listed_tensors(model, checkpoint.opening()).tensors.empty();
}

Opened open_beside(std::unique_ptr<Store> checkpoint, const Store& folder, const CompareOptions& options) {
  OwnModelOptions how = opening_of(checkpoint->root(), options);
  // Assets without weights made the folder, which then is what lists the tensors.
  if (has_config(folder) && (!how.assets || !lists_tensors(*checkpoint, *how.assets)))
    how.assets = folder.root();
  return open_own(std::move(checkpoint), how);
}

// A dict that is named has to be on one of the two sides.
void require_dict(const OwnModel& one, const OwnModel& other, const std::string& dict) {
  if (dict.empty() || one.dict_taken || other.dict_taken) return;
  throw Error(Code::kUnaccounted, "neither side has the dict that `model_dict` names")
      .file(one.store->root())
      .expected(escaped(dict));
}

BesideModel beside_of(const OwnModel& own) { return {own.beside, own.floats_beside}; }

// Lists the copies that the other side has, too, as tensors of the model. Returns the others, which are not
// compared: where the other side lacks one of them, nothing is missing.
BesideModel take_copies(OwnModel& side, const std::function<bool(std::string_view name)>& other_has) {
  BesideModel out{.reason = "a copy of the tensor that the model ties it to"};
  for (auto [copy, of] : side.copies) {
    std::string name(side.store->name(copy));
    if (other_has(name))
      side.tensors.push_back({std::move(name), copy});
    else
      out.names.push_back(std::move(name));
  }
  return out;
}

// The names of the tensors of the model, and of the copies among them.
Names names_of(const OwnModel& side) {
  Names out;
  for (const OwnTensor& t : side.tensors) out.insert(t.name);
  for (auto [copy, of] : side.copies) out.emplace(side.store->name(copy));
  return out;
}

// Adds heads that the folder has and the checkpoint lacks, as an export of a model that ties them makes them
// of the embedding.
void add_made_heads(OwnModel& own, const Store& folder) {
  std::vector<i32> embeddings;
  for (const OwnTensor& t : own.tensors)
    if (is_embedding(t.name)) embeddings.push_back(t.tensor);
  if (!own.folder.tied.value_or(false) || embeddings.size() != 1) return;
  for (i64 t = 0; t < folder.tensor_count(); t++)
    if (is_head(folder.name(t)) && find_tensor(*own.store, folder.name(t)) < 0)
      own.tensors.push_back({std::string(folder.name(t)), embeddings[0], true});
}

// The folder with the model's config, beside one of the two or as the caller names it.
std::optional<std::string> config_beside(const Store& source, const Store& tested, const SidePaths& paths,
                                         const CompareOptions& options) {
  if (options.opening.assets) return options.opening.assets;
  for (auto [store, at] : {std::pair(&source, &paths.source), std::pair(&tested, &paths.tested)})
    if (ModelFolder folder = find_model_folder(*store, *at, std::nullopt); !folder.path.empty())
      return folder.path;
  return std::nullopt;
}

// Models with an adapter around them, as PEFT has them in memory, under the names of a model.
void take_wrappers_off(std::unique_ptr<Store>& source, std::unique_ptr<Store>& tested, const SidePaths& paths,
                       const CompareOptions& options) {
  auto is_model = [](const Store& side) { return is_wrapped_model(side) && !is_adapter_alone(side); };
  const bool of_source = is_model(*source), of_tested = is_model(*tested);
  if (!of_source && !of_tested) return;
  const std::optional<std::string> config = config_beside(*source, *tested, paths, options);
  if (of_source) source = without_wrappers(std::move(source), paths.source, config);
  if (of_tested) tested = without_wrappers(std::move(tested), paths.tested, config);
}

// Whether both have the same tensors by name.
bool same_names(const Store& one, const Store& other) {
  return std::ranges::none_of(tensor_differences(one, other),
                              [](const TensorDifference& d) { return d.one < 0 || d.other < 0; });
}

// A wrapped model and the model itself share none.
bool share_no_name(const Store& one, const Store& other) {
  const std::vector<TensorDifference> differences = tensor_differences(one, other);
  return std::ranges::count_if(differences, [](const TensorDifference& d) { return d.other < 0; }) ==
         one.tensor_count();
}

// Whether transformers takes the names in it as they are.
bool is_model_folder(const Store& store) {
  return store.driver().hf_folder ||
         (!store.files().empty() &&
          is_pytorch_model(store.files()[0].path.empty() ? store.root() : store.files()[0].path));
}

// How alike the names of two files have to be before they are compared as one model; nothing if they never
// are. A file of safetensors that is made of a torch file may lack what has no place in it. Two files of
// safetensors that share names are compared tensor by tensor: a tensor that one file lacks is a difference.
// So are two torch files that share names, have objects, or of which one has more tensors: what a run saves
// beside its model has a place in both. In a folder of a model the names are the model.
std::optional<CommonNames> names_of_one_model(const Store& one, const Store& other) {
  const FormatFamily a = one.driver().family, b = other.driver().family;
  const auto is = [&](FormatFamily x, FormatFamily y) { return (a == x && b == y) || (a == y && b == x); };
  if (is(FormatFamily::kTorch, FormatFamily::kSafetensors)) return CommonNames::kMost;
  if (a != b || is_model_folder(one) || is_model_folder(other)) return std::nullopt;
  const bool share = !share_no_name(one, other);
  if (a == FormatFamily::kSafetensors) return share ? CommonNames::kAll : CommonNames::kMost;
  if (a == FormatFamily::kTorch && !share && one.objects().empty() && other.objects().empty() &&
      one.tensor_count() == other.tensor_count())
    return CommonNames::kAll;
  return std::nullopt;
}

std::string objects_text(const Store& tested, const Store& source) {
  if (tested.objects().empty() && source.objects().empty()) return "";
  if (tested.format() == source.format())
    return "objects are beside the models, whose tensors alone are compared";
  return cat(format_text(tested.format()), " and ", format_text(source.format()),
             " do not store objects in the same way");
}

}  // namespace

bool is_own_beside_model(const Store& checkpoint, const Store& folder) {
  // The tensors of a single file are compared under the names that they have, unless the other side is a
  // model.
  bool of_files = !checkpoint.files().empty() && !checkpoint.files()[0].path.empty();
  return folder.driver().hf_folder && (of_files || has_config(folder)) && is_own_source(checkpoint);
}

Sides sides_of_own_beside_model(std::unique_ptr<Store> tested, std::unique_ptr<Store> source,
                                const CompareOptions& options) {
  const bool imported = is_own_beside_model(*tested, *source);
  std::unique_ptr<Store>&checkpoint = imported ? tested : source, &folder = imported ? source : tested;
  Opened own = open_beside(std::move(checkpoint), *folder, options);
  Sides out{.compared_as = imported
                               ? "each tensor of the checkpoint with the one of that name in the folder"
                               : "each tensor of the folder with the one of that name in the checkpoint"};
  out.beside = {beside_of(*own.own), take_copies(*own.own, [&](std::string_view name) {
                  return find_tensor(*folder, name) >= 0;
                })};
  add_made_heads(*own.own, *folder);
  const std::string root = folder->root();
  (imported ? out.source : out.tested) = open_plain(std::move(folder), root, {});
  (imported ? out.tested : out.source) = as_written(std::move(own));
  out.changes = casts_to(out.tested_store(), out.source_store());
  return out;
}

bool is_dcp_of_own_names(const Store& one, const Store& other) {
  return dcp_dialect(one) && dcp_dialect(other) && has_own_names(one) && has_own_names(other);
}

bool is_own_pair(const Store& tested, const Store& source, const std::string& model_dict, bool listed) {
  bool readable =
      tested.driver().family != FormatFamily::kHdf5 && source.driver().family != FormatFamily::kHdf5;
  if (!readable || !has_own_names(tested) || !has_own_names(source)) return false;
  if (!model_dict.empty()) return true;
  const bool of_run = tested.driver().of_a_run || source.driver().of_a_run;
  const bool alike = tested.format() == source.format() || is_dcp_of_own_names(tested, source);
  const std::optional<CommonNames> common = names_of_one_model(tested, source);
  if (of_run != alike && (of_run || !common)) return of_run;
  // Two of a run of one format; or a file and one with a dict around the model: {"model": {...}}.
  if (same_names(tested, source)) return false;
  if (differ_in_section(tested, source, alike ? CommonNames::kAll : CommonNames::kMost)) return true;
  return common && are_of_one_model(tested, source, *common, listed);
}

Sides sides_of_own_pair(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                        const CompareOptions& options) {
  const std::string objects = objects_text(*tested, *source);
  const bool flat = tested->driver().flat || source->driver().flat;
  if (!flat && options.model_dict.empty() && same_names(*tested, *source)) {
    Sides out = plain_sides(std::move(tested), std::move(source));
    out.objects_apart = objects;
    out.changes = casts_to(out.tested_store(), out.source_store());
    return out;
  }
  take_wrappers_off(source, tested, paths, options);
  OwnModelOptions of_source = opening_of(paths.source, options),
                  of_tested = opening_of(paths.tested, options);
  of_source.dict_if_there = of_tested.dict_if_there = true;
  // A counter in the dict of a model is written beside its weights, where its name alone says what it is.
  of_source.in_model = counters_of_model(*tested), of_tested.in_model = counters_of_model(*source);
  const CommonNames common = common_names(*tested, *source, options.model_dict);
  of_source.keep_names = of_tested.keep_names = common != CommonNames::kFew;
  // The config says which tensors are copies, and how the tensors of a folder are named. Where both sides
  // have the same names, nothing was left out or renamed. Flat tensors have their shapes from the config.
  std::optional<std::string> config;
  if (flat || common != CommonNames::kAll) config = config_beside(*source, *tested, paths, options);
  of_source.assets = of_tested.assets = config;
  Opened from = open_own(std::move(source), of_source), to = open_own(std::move(tested), of_tested);
  require_dict(*from.own, *to.own, options.model_dict);
  Sides out{.compared_as = "each tensor of the model with the one of that name on the other side"};
  out.objects_apart = objects;
  out.beside = {beside_of(*from.own), beside_of(*to.own)};
  const Names of_source_model = names_of(*from.own), of_tested_model = names_of(*to.own);
  const auto in = [](const Names& names) {
    return [&names](std::string_view name) { return names.contains(name); };
  };
  out.beside.push_back(take_copies(*from.own, in(of_tested_model)));
  out.beside.push_back(take_copies(*to.own, in(of_source_model)));
  out.source = as_written(std::move(from)), out.tested = as_written(std::move(to));
  out.changes = casts_to(out.tested_store(), out.source_store());
  return out;
}

}  // namespace mckpt::impl
