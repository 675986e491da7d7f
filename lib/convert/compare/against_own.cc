// Compares checkpoints with the model's own names, under these names:
//
//   a Hugging Face folder and such a checkpoint, either of them tested     under the names of the folder
//   such checkpoints of two formats or sections, or one and a file         under the names that both have, or
//                                                                          where these differ, those of the folder
//
// Only the tensors of the model are compared; what is beside them is named.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "convert/compare/against.h"
#include "convert/compare/compare.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/differences/tensors.h"
#include "convert/compare/object_check.h"
#include "convert/open/own_model.h"
#include "convert/own/own_names.h"
#include "core/base/text.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/tied_names.h"
#include "io/dcp/dcp.h"
#include "io/file/folder.h"
#include "io/store/soundness.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

bool has_config(const Store& folder) {
  return Folder(folder.root(), folder.opening()).has_file("config.json");
}

OwnModelOptions opening_of(const std::string& source, const Comparing& c) {
  return {.source = source,
          .assets = c.options.opening.assets,
          .model_dict = c.options.model_dict,
          .accept = c.options.opening.accept,
          .apart = is_of_records,
          .complete = false,
          .threads = c.options.threads};
}

OwnModel open_own(std::unique_ptr<Store> checkpoint, const OwnModelOptions& how, const Comparing& c) {
  OwnModel own = open_own_model(std::move(checkpoint), how);
  c.oddities.push_back({own.store->root(), std::move(own.oddities)});
  return own;
}

using Names = std::set<std::string, std::less<>>;

// Whether the files of the folder say which tensors the model has.
bool lists_tensors(const Store& checkpoint, const std::string& folder) {
  const ModelFolder model = find_model_folder(checkpoint, checkpoint.root(), folder);
  return !listed_tensors(model, checkpoint.opening()).tensors.empty();
}

OwnModel open_beside(std::unique_ptr<Store> checkpoint, const Store& folder, const Comparing& c) {
  OwnModelOptions how = opening_of(checkpoint->root(), c);
  // Assets without weights made the folder, which then is what lists the tensors.
  if (has_config(folder) && (!how.assets || !lists_tensors(*checkpoint, *how.assets)))
    how.assets = folder.root();
  return open_own(std::move(checkpoint), how, c);
}

// A dict that is named has to be on one of the two sides.
void require_dict(const OwnModel& one, const OwnModel& other, const Comparing& c) {
  const std::string& dict = c.options.model_dict;
  if (dict.empty() || one.dict_taken || other.dict_taken) return;
  throw Error(Code::kUnaccounted, "neither side has the dict that `model_dict` names")
      .file(one.store->root())
      .expected(escaped(dict));
}

// Names what is beside the model on one side. What may be weights, such as an average of the model, has a line
// of its own, which the verdict repeats.
void leave_beside(const OwnModel& own, const Comparing& c) {
  const char* reason = "beside the model, whose tensors alone are compared";
  for (const std::string& name : own.beside) c.comparison.leave_beside(reason, name);
  std::vector<std::string_view> chosen;
  for (const std::string& name : own.floats_beside)
    if (c.comparison.chooses(name)) chosen.push_back(name);
  if (chosen.empty()) return;
  const i64 count = std::ssize(chosen);
  c.report.add({.name = "others",
                .count = count,
                .unit = "tensors",
                .note = cat("not compared: ", counted(count, "tensor"),
                            " beside the model that may be weights: ", listed(chosen, 3))},
               {});
}

// What a conversion of the model's tensors leaves out and casts. `copies`: names of tensors that repeat others.
// Refers to both stores.
Intended intended_of(const Store& tested, const Store& source, Names copies) {
  Intended intended = intended_casts(tested, source);
  intended.repeated = [copies = std::move(copies)](std::string_view name) -> std::string {
    return copies.contains(name) ? "a copy of the tensor that the model ties it to" : "";
  };
  return intended;
}

Names copies_of(const OwnModel& own) {
  Names out;
  for (auto [copy, of] : own.copies) out.emplace(own.store->name(copy));
  return out;
}

// The tensors of the model, and heads that the folder has and the checkpoint lacks, as an export of a model that
// ties them makes them of the embedding. Takes the model's store.
std::unique_ptr<Store> with_made_heads(OwnModel& own, const Store& folder) {
  std::vector<i32> embeddings;
  for (const OwnTensor& t : own.tensors)
    if (is_embedding(t.name)) embeddings.push_back(t.tensor);
  if (own.folder.tied.value_or(false) && embeddings.size() == 1)
    for (i64 t = 0; t < folder.tensor_count(); t++)
      if (is_head(folder.name(t)) && find_tensor(*own.store, folder.name(t)) < 0)
        own.tensors.push_back({std::string(folder.name(t)), embeddings[0], true});
  return take_written(own);
}

// The folder with the model's config, beside one of the two or as the caller names it.
std::optional<std::string> config_beside(const Store& source, const std::string& source_path,
                                         const Store& tested, const std::string& path, const Comparing& c) {
  if (c.options.opening.assets) return c.options.opening.assets;
  for (auto [store, at] : {std::pair(&source, &source_path), std::pair(&tested, &path)})
    if (ModelFolder folder = find_model_folder(*store, *at, std::nullopt); !folder.path.empty())
      return folder.path;
  return std::nullopt;
}

// A model with an adapter around it, as PEFT has it in memory, under the names of a model.
std::unique_ptr<Store> as_model(std::unique_ptr<Store> side) {
  return is_adapter_alone(*side) ? std::move(side) : unwrapped_model(std::move(side));
}

// Whether both have the same tensors by name.
bool same_names(const Store& one, const Store& other) {
  return std::ranges::none_of(tensor_differences(one, other),
                              [](const TensorDifference& d) { return d.one < 0 || d.other < 0; });
}

}  // namespace

bool is_own_beside_model(const Store& checkpoint, const Store& folder) {
  // The tensors of a single file are compared under the names that they have, unless the other side is a
  // model.
  bool of_files = !checkpoint.files().empty() && !checkpoint.files()[0].path.empty();
  return folder.driver().hf_folder && (of_files || has_config(folder)) && is_own_source(checkpoint);
}

bool against_own_export(const Store& tested, std::unique_ptr<Store> source, const Comparing& c) {
  OwnModel own = open_beside(std::move(source), tested, c);
  c.report.compared_as = "each tensor of the folder with the one of that name in the checkpoint";
  leave_beside(own, c);
  Names copies = copies_of(own);
  // Some folders of a model have them too.
  for (auto [copy, of] : own.copies) own.tensors.push_back({std::string(own.store->name(copy)), copy});
  const std::unique_ptr<Store> from = with_made_heads(own, tested);
  bool as_asked = check_types_by_name(tested, *from, c);
  return against_names(tested, *from, nullptr, c, intended_of(tested, *from, std::move(copies))) && as_asked;
}

bool against_own_import(std::unique_ptr<Store> tested, const Store& source, const Comparing& c) {
  OwnModel own = open_beside(std::move(tested), source, c);
  c.report.compared_as = "each tensor of the checkpoint with the one of that name in the folder";
  leave_beside(own, c);
  std::unique_ptr<Store> written = with_made_heads(own, source);
  bool as_asked = check_types_by_name(*written, source, c);
  return against_names(*written, source, nullptr, c, intended_casts(*written, source)) && as_asked;
}

bool is_dcp_of_own_names(const Store& one, const Store& other) {
  return dcp_dialect(one) && dcp_dialect(other) && has_own_names(one) && has_own_names(other);
}

bool is_own_pair(const Store& tested, const Store& source, const std::string& model_dict) {
  bool readable =
      tested.driver().family != FormatFamily::kHdf5 && source.driver().family != FormatFamily::kHdf5;
  if (!readable || !has_own_names(tested) || !has_own_names(source)) return false;
  if (!model_dict.empty()) return true;
  const bool of_run = tested.driver().of_a_run || source.driver().of_a_run;
  const bool alike = tested.format() == source.format() || is_dcp_of_own_names(tested, source);
  if (of_run != alike) return of_run;
  // Two of a run of one format; or a file and one with a dict around the model: {"model": {...}}.
  return !same_names(tested, source) &&
         differ_in_section(tested, source, alike ? CommonNames::kAll : CommonNames::kMost);
}

bool against_own_pair(std::unique_ptr<Store> tested, const std::string& path, std::unique_ptr<Store> source,
                      const std::string& source_path, const Comparing& c) {
  if (!tested->objects().empty() || !source->objects().empty())
    objects_not_compared(tested->format() == source->format()
                             ? "they are beside the models, whose tensors alone are compared"
                             : cat(format_text(tested->format()), " and ", format_text(source->format()),
                                   " do not store objects in the same way"),
                         c.report);
  const bool flat = tested->driver().flat || source->driver().flat;
  if (!flat && c.options.model_dict.empty() && same_names(*tested, *source))
    return check_types_by_name(*tested, *source, c) &
           against_names(*tested, *source, nullptr, c, intended_casts(*tested, *source));
  source = as_model(std::move(source)), tested = as_model(std::move(tested));
  OwnModelOptions of_source = opening_of(source_path, c), of_tested = opening_of(path, c);
  of_source.dict_if_there = of_tested.dict_if_there = true;
  // A counter in the dict of a model is written beside its weights, where its name alone says what it is.
  of_source.in_model = counters_of_model(*tested), of_tested.in_model = counters_of_model(*source);
  CommonNames common = common_names(*tested, *source, c.options.model_dict);
  of_source.keep_names = of_tested.keep_names = common != CommonNames::kFew;
  // The config says which tensors are copies, and how those of a folder are named. Where both sides have the
  // same names, nothing was left out or renamed. Flat tensors have their shapes from it.
  std::optional<std::string> config;
  if (flat || common != CommonNames::kAll) config = config_beside(*source, source_path, *tested, path, c);
  of_source.assets = of_tested.assets = config;
  OwnModel from = open_own(std::move(source), of_source, c), to = open_own(std::move(tested), of_tested, c);
  require_dict(from, to, c);
  c.report.compared_as = "each tensor of the model with the one of that name on the other side";
  leave_beside(from, c);
  leave_beside(to, c);
  // Of both sides the tensors of the model; copies that only the source has are none that the result lacks.
  Names copies = copies_of(from);
  for (auto [copy, of] : from.copies) from.tensors.push_back({std::string(from.store->name(copy)), copy});
  const std::unique_ptr<Store> written = take_written(to), model = take_written(from);
  bool as_asked = check_types_by_name(*written, *model, c);
  return against_names(*written, *model, nullptr, c, intended_of(*written, *model, std::move(copies))) &&
         as_asked;
}

}  // namespace mckpt::impl
