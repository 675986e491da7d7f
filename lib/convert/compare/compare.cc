// Chooses how two stores are compared by what they are, and compares everything beside their tensors: listed
// files, assets and objects.
#include "convert/compare/compare.h"

#include <algorithm>
#include <functional>
#include <set>

#include "convert/compare/against.h"
#include "convert/compare/checks/adapter.h"
#include "convert/compare/checks/assets.h"
#include "convert/compare/checks/beside.h"
#include "convert/compare/checks/load_files.h"
#include "convert/compare/checks/metadata.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/object_check.h"
#include "convert/open/checkpoint.h"
#include "convert/open/damage.h"
#include "convert/open/megatron_names.h"
#include "convert/open/own_model.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/quantized/dequantize.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/assets.h"
#include "hf/folder/model_folder.h"
#include "hf/model.h"
#include "hf/quantized/dequantized_store.h"
#include "io/dcp/dcp.h"
#include "io/file/folder.h"
#include "io/store/finding.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/manifest_findings.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

constexpr const char* kOneSideHasObjects =
    "a Hugging Face folder has no objects, such as args and the iteration, to compare with";

bool is_sharded(const Store& store) { return dcp_dialect(store).has_value() || store.driver().ranks_apart; }

// Throws kUnknownFormat for a single file beside a DCP folder or files of ranks with the names of Megatron:
// only a config.json connects them with the names of a model, and a single file has none.
void refuse_single_file(const Store& model) {
  if (is_folder(model.root(), model.opening())) return;
  throw Error(Code::kUnknownFormat, "a sharded checkpoint cannot be compared with a single file")
      .file(model.root())
      .expected("another sharded checkpoint, or the folder of a Hugging Face model with its config.json")
      .found(cat("a file, ", format_text(model.format())));
}

// The folder of a model that was chosen below the path, as of a run that keeps it among its shards: it is opened
// again as a model. Adapters and archives are opened by their own paths.
std::string chosen_path(const Store& model, const std::string& path) {
  const bool below = model.driver().hf_folder && !adapted_view(model) &&
                     model.root().starts_with(cat(path, path.ends_with("/") ? "" : "/"));
  return below && is_folder(model.root(), model.opening()) ? model.root() : path;
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

// Compares the objects of two sides of one format. For two formats the report notes that objects are not
// compared.
bool compare_file_objects(const Store& tested, const Store& source, const Comparing& c) {
  if (tested.objects().empty() && source.objects().empty()) return true;
  if (tested.format() == source.format()) return compare_objects(tested, source, {}, c);
  objects_not_compared(cat(format_text(tested.format()), " and ", format_text(source.format()),
                           " do not store objects in the same way"),
                       c.report);
  return true;
}

// Two models' files, or two single files.
bool compare_models(const Store& tested, const Store& source, const std::string& source_path,
                    const Comparing& c) {
  bool same = compare_file_objects(tested, source, c);
  // Single files are converted tensor by tensor, and lose none.
  bool folders = !tested.files().empty() && !tested.files()[0].path.empty();
  Intended intended;
  std::optional<TensorNames> dropped;  // read when a tensor is missing
  if (tested.format() == source.format() && folders)
    intended.left_out = [&](std::string_view name) {
      if (!dropped) dropped = dropped_tensors(source_path, c.options.opening.model, tested);
      return dropped->contains(name) ? std::string("no conversion keeps them") : std::string();
    };
  same &= check_types_by_name(tested, source, c);
  // Types that nobody asked for are said, and do not hide whether the values are equal.
  CompareOptions any = c.options;
  any.any_type = true;
  return against_names(tested, source, nullptr, {any, c.comparison, c.observer, c.report, c.oddities},
                       intended) &&
         same;
}

// A quantised side is compared by its values, in the type that the other side has them in. Where the other
// side is a copy of the files (torch DCP, .pt), which is not read as values, both are compared as they are
// stored.
std::unique_ptr<Store> as_the_other(std::unique_ptr<Store> side, const std::string& path, const Store& other,
                                    const OpenOptions& files) {
  const DequantizedStore* view = dequantized_view(*side);
  if (!view || view->model().tensors.empty() || dequantized_view(other)) return side;
  const QuantizedTensor& q = view->model().tensors[0];
  const std::string scales(view->source().name(q.scales)), values = q.name;
  for (i64 t = 0; t < other.tensor_count(); t++) {
    if (other.name(t).ends_with(scales)) return open_store(path, files);
    bool other_type = other.name(t).ends_with(values) && other.dtype(t) != view->values();
    if (other_type && is_dequantized_type(other.dtype(t)))
      return dequantized(open_store(path, files), other.dtype(t));
  }
  return side;
}

// Why the values of a quantised side cannot be known: its tensors contradict each other or the config.
std::optional<Finding> contradiction_of(const Store& side) {
  const DequantizedStore* view = dequantized_view(side);
  if (!view) return std::nullopt;
  const Finding* found = view->model().contradiction();
  return found ? std::optional(*found) : std::nullopt;
}

// Whether a config says which model a source with names of its own is. Without one no import of it can be planned, and two
// checkpoints are compared by the names of their tensors.
bool is_known_model(const Store& tested, const Store& source, const std::string& path, const Comparing& c) {
  return c.options.opening.assets || !own_assets(tested).empty() || !model_folder_beside(source, path).path.empty();
}

// Compares everything except the assets.
bool compare_stores(std::unique_ptr<Store> tested, const std::string& path, std::unique_ptr<Store> source,
                    const std::string& source_path, const Comparing& c) {
  bool import = is_own_beside_model(*tested, *source), exported = is_own_beside_model(*source, *tested);
  if (import || exported) objects_not_compared(kOneSideHasObjects, c.report);
  if (import) return against_own_import(std::move(tested), *source, c);
  if (exported) return against_own_export(*tested, std::move(source), c);
  if (is_sharded(*tested) && has_megatron_names(*tested) && is_own_source(*source) &&
      is_known_model(*tested, *source, source_path, c)) {
    objects_not_compared(
        "a conversion makes args of the model's config, and copies no other object of the source", c.report);
    return against_model(std::move(tested), source_path, *source, c);
  }
  if (is_own_pair(*tested, *source, c.options.model_dict))
    return against_own_pair(std::move(tested), path, std::move(source), source_path, c);
  refuse_model_dict(c.options.model_dict, source_path);
  if (is_sharded(*tested) && is_sharded(*source))
    return against_checkpoint(std::move(tested), std::move(source), c);
  if (is_sharded(*tested) == is_sharded(*source)) return compare_models(*tested, *source, source_path, c);
  refuse_single_file(is_sharded(*tested) ? *source : *tested);
  objects_not_compared(kOneSideHasObjects, c.report);
  if (is_sharded(*tested)) return against_model(std::move(tested), source_path, *source, c);
  return against_export(*tested, chosen_path(*tested, path), std::move(source), c);
}

// Everything beside the tensors and objects: listed files, files that programs load, assets and metadata.
bool compare_beside(const Store& tested, const Store& source, const std::string& path,
                    const std::string& source_path, const CompareOptions& options, VerifyReport& report) {
  const bool every = options.counting.all;
  bool same = check_manifests(tested, source, options.threads, report);
  same &= compare_load_files(tested, source, report);
  same &= compare_assets(tested, source, options.opening.assets, every, report);
  same &= compare_adapters(tested, source, every, report);
  warn_of_bases(tested, source, report);
  same &= compare_metadata(tested, source, every, report);
  name_beside(model_path(path, tested.opening()), tested, every, report);
  // A list of differences is of both sides alike.
  if (every) name_beside(model_path(source_path, source.opening()), source, every, report);
  return same;
}

// The one rule of damage, of both sides alike: what is wrong with single records is a finding of the comparison,
// which leaves their items out; other damage, such as a file of a rank that is missing or is another rank's, is
// refused, because nothing shows which items are then not those that were saved.
void refuse_damaged_side(const Store& side, std::span<const Code> accepted) {
  std::vector<Finding> findings = side.findings();
  const std::optional<Finding> contradiction = contradiction_of(side);  // which compare() reports
  std::erase_if(findings, [&](const Finding& f) {
    return is_of_records(f) || (contradiction && f.code == contradiction->code);
  });
  for (Finding& f : findings) f.warning |= std::ranges::find(accepted, f.code) != accepted.end();
  require_sound(findings, side.root());
}

// Two sides as they are, or as the values that they stand for.
Compared compare_values(std::unique_ptr<Store> tested, const std::string& path, std::unique_ptr<Store> source,
                        const std::string& source_path, const CompareOptions& options, Observer& observer) {
  Compared out;
  const OpenOptions& files = options.opening.model.files;
  if (dequantized_view(*tested) && dequantized_view(*source)) {
    // Scales may differ by less than bfloat16 shows.
    tested = dequantized(open_store(path, files), DType::kF32);
    source = dequantized(open_store(source_path, files), DType::kF32);
  }
  source = as_the_other(std::move(source), source_path, *tested, files);
  tested = as_the_other(std::move(tested), path, *source, files);
  refuse_damaged_side(*tested, options.opening.accept);
  refuse_damaged_side(*source, options.opening.accept);
  Comparison comparison(*tested, *source, options.threads, options.counting, options.choice, observer);
  const bool beside = !options.choice.all() || compare_beside(*tested, *source, path, source_path, options, out.report);
  CompareOptions every_byte = options;
  every_byte.opening.copies = CopyUse::kRead;
  Comparing c{every_byte, comparison, observer, out.report, out.oddities};
  out.equal = compare_stores(std::move(tested), path, std::move(source), source_path, c) && beside;
  return out;
}

// A quantised result and a source of other values: its codes and scales are compared with those of the source,
// quantised again. Nothing if the source does not have its tensors.
std::optional<Compared> compare_codes(const std::string& path, const std::string& source_path,
                                      const CompareOptions& options, Observer& observer) {
  const OpenOptions& files = options.opening.model.files;
  const std::unique_ptr<Store> made = quantized_like(path, source_path, options);
  if (!made) return std::nullopt;
  const std::unique_ptr<Store> codes = open_store(path, files), source = open_store(source_path, files);
  Compared out;
  Comparison comparison(*codes, *made, options.threads, options.counting, options.choice, observer);
  const bool beside = !options.choice.all() || compare_beside(*codes, *source, path, source_path, options, out.report);
  Comparing c{options, comparison, observer, out.report, out.oddities};
  out.equal = against_quantized(*codes, *made, c) && beside;
  return out;
}

// Says that a side is quantised, and what to do, where its values are not those of the other side.
void name_quantized(const std::string& path, const std::string& scheme, const std::string& source_path,
                    VerifyReport& report) {
  report.add(
      {.name = "codes",
       .unit = "tensors",
       .note = cat(escaped(path, 4096), " is quantised (", scheme, "), and ", escaped(source_path, 4096),
                   " is not: `mckpt diff` measures how far the values are apart")},
      {});
}

}  // namespace

std::string opened_root(const Store& store, const std::string& path) {
  return adapted_view(store) ? path : store.root();
}

void Comparing::note_oddities(const CheckpointModel& opened) const {
  oddities.push_back({opened.store().root(), opened.oddities()});
}

Compared compare(std::unique_ptr<Store> tested, const std::string& path, const std::string& source_path,
                 const CompareOptions& options, Observer& observer) {
  std::unique_ptr<Store> source = open_values(source_path, options.opening.model.files);
  const std::string source_root = opened_root(*source, source_path);
  refuse_lone_shards(*tested, "compared");
  refuse_lone_shards(*source, "compared");
  tested = dequantized(std::move(tested));
  if (std::optional<Finding> contradiction = contradiction_of(*source)) {
    Compared out{.source_root = source_root};
    out.report.add({"source", Check::Status::kFail, 1, "problem"}, {std::move(*contradiction)});
    return out;
  }
  if (std::optional<Finding> contradiction = contradiction_of(*tested)) {
    Compared out;
    if (!is_sharded(*source))
      out = compare_values(std::move(tested), path, std::move(source), source_path, options, observer);
    out.report.add({"scales", Check::Status::kFail, 1, "problem"}, {std::move(*contradiction)});
    out.equal = false, out.source_root = source_root;
    return out;
  }
  const DequantizedStore* view = dequantized_view(*tested);
  const std::string scheme =
      view && !dequantized_view(*source) && !options.counting.all ? quantized_text(*view) : "";
  Compared out;
  // Values that were quantised are compared with what an import makes of them, whichever side was made of the
  // other. In a list of differences the sides keep their places.
  if (!scheme.empty() && is_sharded(*source) && has_megatron_names(*source)) {
    CompareOptions turned = options;
    turned.counting.turned = true;
    out = compare(std::move(source), source_path, path, turned, observer);
  } else {
    out = compare_values(std::move(tested), path, std::move(source), source_path, options, observer);
  }
  out.source_root = source_root;
  if (scheme.empty() || out.equal) return out;
  // The result may have been quantised from the source's values, which lost some of them.
  if (std::optional<Compared> codes = compare_codes(path, source_path, options, observer))
    out = std::move(*codes), out.source_root = source_root;
  if (!out.equal) name_quantized(path, scheme, source_path, out.report);
  return out;
}

}  // namespace mckpt::impl
