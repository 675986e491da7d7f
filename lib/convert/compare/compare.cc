// The one way of all comparisons: what is beside the tensors, both sides opened alike, their plan, and the
// comparison of its bytes.
#include "convert/compare/compare.h"

#include <algorithm>

#include "convert/compare/activations.h"
#include "convert/compare/checks/adapter.h"
#include "convert/compare/checks/assets.h"
#include "convert/compare/checks/beside.h"
#include "convert/compare/checks/carried.h"
#include "convert/compare/checks/load_files.h"
#include "convert/compare/checks/metadata.h"
#include "convert/compare/checks/module_copies.h"
#include "convert/compare/checks/nesting.h"
#include "convert/compare/compare_sides.h"
#include "convert/compare/comparing.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/sides/sides.h"
#include "convert/compare/turned_sides.h"
#include "convert/open/damage.h"
#include "convert/open/megatron_names.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/quantized/dequantize.h"
#include "hf/adapter/adapted_store.h"
#include "hf/quantized/dequantized_store.h"
#include "io/dcp/dcp.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "io/verify/manifest_findings.h"

namespace mckpt::impl {
namespace {

// A quantised side is compared by its values, in the type that the other side has them in. Where the other
// side is a copy of the files (torch DCP, .pt), which is not read as values, both are compared as they are
// stored.
std::unique_ptr<Store> as_the_other(std::unique_ptr<Store> side, const std::string& path, const Store& other,
                                    const OpenOptions& files) {
  const DequantizedStore* view = dequantized_view(*side);
  if (!view || !view->decodes() || dequantized_view(other)) return side;
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
  name_unlike_nesting(tested, source, report);
  name_beside(model_path(path, tested.opening()), tested, every, report);
  // A list of differences is of both sides alike.
  if (every) name_beside(model_path(source_path, source.opening()), source, every, report);
  return same;
}

// The one rule of damage, of both sides alike: what is wrong with single records is a finding of the
// comparison, which leaves their items out; other damage, such as a file of a rank that is missing or is
// another rank's, is refused, because nothing shows which items are then not those that were saved.
void refuse_damaged_side(const Store& side, std::span<const Code> accepted) {
  std::vector<Finding> findings = side.findings();
  const std::optional<Finding> contradiction = contradiction_of(side);  // which compare() reports
  std::erase_if(findings, [&](const Finding& f) {
    return is_of_records(f) || (contradiction && f.code == contradiction->code);
  });
  for (Finding& f : findings) f.warning |= std::ranges::find(accepted, f.code) != accepted.end();
  require_sound(findings, side.root());
}

// The options for the sides in the other order. The values of a finding are turned where it is made; a list
// of differences is turned as a whole.
CompareOptions turned_options(const CompareOptions& options) {
  CompareOptions out = options;
  std::swap(out.path_tp, out.opening.source_tp), std::swap(out.path_etp, out.opening.source_etp);
  std::swap(out.path_tp_setting, out.opening.tp_setting);
  std::swap(out.path_etp_setting, out.opening.etp_setting);
  out.counting.turned = !options.counting.all;
  return out;
}

// Two sides as they are, or as the values that they stand for.
Compared compare_values(OpenPath one, OpenPath other, const CompareOptions& options, Observer& observer) {
  Compared out;
  const std::string &path = one.path, &source_path = other.path;
  std::unique_ptr<Store> tested = std::move(one.store), source = std::move(other.store);
  const OpenOptions& files = options.opening.model.files;
  if (dequantized_view(*tested) && dequantized_view(*source)) {
    // Scales may differ by less than bfloat16 shows.
    tested = dequantized(open_store(path, files), DType::kF32);
    source = dequantized(open_store(source_path, files), DType::kF32);
  }
  source = as_the_other(std::move(source), source_path, *tested, files);
  tested = as_the_other(std::move(tested), path, *source, files);
  const std::vector<std::string> scales = take_activation_scales(*tested, *source);
  refuse_damaged_side(*tested, options.opening.accept);
  refuse_damaged_side(*source, options.opening.accept);
  list_module_copies(*tested, *source, options.choice, out.report);
  const bool beside =
      !options.choice.all() || compare_beside(*tested, *source, path, source_path, options, out.report);
  // Types that were asked for are the types of the tested side, which keeps its place then.
  const bool any_types = options.types.kind == TypeClaim::kNone && options.types.rules.empty();
  CompareOptions every_byte = options;
  every_byte.opening.copies = CopyUse::kRead;
  SidePaths paths{path, source_path};
  const bool turned = any_types && has_turned_sides(*tested, *source, options.counting.all);
  if (turned) {
    std::swap(tested, source), std::swap(paths.tested, paths.source);
    every_byte = turned_options(every_byte);
  }
  // Sides keep both stores, to which the comparison refers.
  Comparison comparison(*tested, *source, options.threads, every_byte.counting, options.choice, observer);
  const std::string root = tested->root();
  const VerifyReport before = out.report;
  const Store &one_side = *tested, &other_side = *source;
  const Sides sides = open_sides(std::move(tested), std::move(source), paths, every_byte);
  const Comparing comparing{every_byte, comparison, observer, out.report};
  name_activation_scales(scales, comparing);
  out.equal = compare_sides(sides, comparing, out.oddities) && beside;
  name_carried_values(one_side, other_side, out.report);
  if (turned) turn_sides(out.report, before, root, options.counting.all);
  return out;
}

// A quantised result and a source of other values: its codes and scales are compared with the source's,
// quantised again. Nothing if the source does not have its tensors.
std::optional<Compared> compare_codes(const std::string& path, const std::string& source_path,
                                      const CompareOptions& options, Observer& observer) {
  const OpenOptions& files = options.opening.model.files;
  std::unique_ptr<Store> made = quantized_like({path, source_path}, options);
  if (!made) return std::nullopt;
  const std::vector<std::string> scales = dequantized_view(*open_values(path, files))->activation_scales();
  std::unique_ptr<Store> codes = open_store(path, files);
  const std::unique_ptr<Store> source = open_store(source_path, files);
  Compared out;
  Comparison comparison(*codes, *made, options.threads, options.counting, options.choice, observer);
  const bool beside =
      !options.choice.all() || compare_beside(*codes, *source, path, source_path, options, out.report);
  const Sides sides = sides_of_codes(std::move(codes), std::move(made), scales);
  const Comparing comparing{options, comparison, observer, out.report};
  name_activation_scales(scales, comparing);
  out.equal = compare_sides(sides, comparing, out.oddities) && beside;
  return out;
}

// Says that a side is quantised, and what to do, where its values differ from the other side's.
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

Compared compare(OpenPath tested, OpenPath source, const CompareOptions& options, Observer& observer) {
  const std::string path = tested.path, source_path = source.path;
  refuse_lone_shards(*tested.store, "compared");
  refuse_lone_shards(*source.store, "compared");
  for (OpenPath* side : {&source, &tested})
    if (!dequantized_view(*side->store)) side->store = dequantized(std::move(side->store));
  if (std::optional<Finding> contradiction = contradiction_of(*source.store)) {
    Compared out;
    out.report.add({"source", Check::Status::kFail, 1, "problem"}, {std::move(*contradiction)});
    return out;
  }
  if (std::optional<Finding> contradiction = contradiction_of(*tested.store)) {
    Compared out;
    if (!is_sharded(*source.store))
      out = compare_values(std::move(tested), std::move(source), options, observer);
    out.report.add({"scales", Check::Status::kFail, 1, "problem"}, {std::move(*contradiction)});
    out.equal = false;
    return out;
  }
  const DequantizedStore* view = dequantized_view(*tested.store);
  const std::string scheme =
      view && view->decodes() && !dequantized_view(*source.store) && !options.counting.all
          ? quantized_text(*view)
          : "";
  Compared out;
  // Values that were quantised are compared with what an import makes of them, whichever side was made of the
  // other. A list of differences has the tensors of the model in both orders.
  if (!scheme.empty() && is_sharded(*source.store) && has_megatron_names(*source.store)) {
    CompareOptions turned = options;
    turned.counting.turned = true;
    out = compare(std::move(source), std::move(tested), turned, observer);
  } else {
    out = compare_values(std::move(tested), std::move(source), options, observer);
  }
  if (scheme.empty() || out.equal) return out;
  // The result may have been quantised from the source's values, which lost some of them.
  if (std::optional<Compared> codes = compare_codes(path, source_path, options, observer))
    out = std::move(*codes);
  if (!out.equal) name_quantized(path, scheme, source_path, out.report);
  return out;
}

}  // namespace mckpt::impl
