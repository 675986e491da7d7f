// Two checkpoints of one model:
//
//   of two formats, or a known model    under the names of fsdp_dtensor
//   with differently grouped layers     under the names without groups, if the model is not known
//   of a model that is not known        under their own names
//   of two models                       under their own names, or of two formats under the names of fsdp_dtensor
#include <algorithm>

#include "convert/compare/differences/tensors.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/kinds.h"
#include "convert/compare/sides/main_weights.h"
#include "convert/compare/sides/megatron_changes.h"
#include "convert/compare/sides/models.h"
#include "convert/compare/sides/paired_keys.h"
#include "convert/facts/pattern_args.h"
#include "convert/keys/key_table.h"
#include "convert/layers/model_layers.h"
#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pipes.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kOtherLayers =
    "args and settings name the layers, and the two sides name the layers differently";

// Whether the training runs name the layers differently: one of them trained a GPT model and one a hybrid, or
// the groups differ. Pipes name no layer.
bool differ_in_layers(const Store& tested, const Store& source) {
  std::optional<LayerPattern> a = pattern_of_run(tested), b = pattern_of_run(source);
  return a.has_value() != b.has_value() || (a && !same_but_pipes(*a, *b));
}

// Whether both are hybrid models of the same format, in which groups of layers have other names. A GPT model
// is compared under the names of its table.
bool differ_in_groups(const Store& tested, const Store& source) {
  std::optional<DcpDialect> dialect = dcp_dialect(tested);
  bool has_groups = dialect == DcpDialect::kTorchDist || dialect == DcpDialect::kFsdpDtensor;
  if (!has_groups || dcp_dialect(source) != dialect) return false;
  std::optional<LayerPattern> a = pattern_of_run(tested), b = pattern_of_run(source);
  if (!a || !b || (!a->has_groups() && !b->has_groups())) return false;
  return std::ranges::any_of(tensor_differences(tested, source),
                             [](const TensorDifference& d) { return d.one < 0 || d.other < 0; });
}

// Two hybrid models under the names that their layers have without groups. Their args are not compared.
Sides without_groups(std::unique_ptr<Store> tested, std::unique_ptr<Store> source,
                     const CompareOptions& options) {
  const DcpDialect dialect = *dcp_dialect(*tested);
  for (std::unique_ptr<Store>* side : {&tested, &source})
    if (has_grouped_layers(**side)) *side = with_flat_layers(std::move(*side), dialect);
  Sides out = plain_sides(std::move(tested), std::move(source));
  out.objects_apart = kOtherLayers;
  out.compared_as = "tensors of the same names, as a model without groups of layers has them";
  out.notes.emplace_back("layers  are compared under the names that they have in a model without groups");
  out.changes = changes_under_own_names(out.source_store(), options);
  return out;
}

// The options that give ranks describe the source; the tested side has options of its own.
Opened open_tested(std::unique_ptr<Store> tested, CheckpointOptions how, const CompareOptions& options) {
  how.source_tp = options.path_tp, how.tp_setting = options.path_tp_setting;
  how.source_etp = options.path_etp, how.etp_setting = options.path_etp_setting;
  try {
    const std::string root = tested->root();
    return open_sharded(std::move(tested), {.source = root, .how = how});
  } catch (Error& e) {
    if (e.code() == Code::kUnknownPartition)
      e.help("give the number of ranks with `path_tp` N, for experts with `path_etp` N");
    throw;
  }
}

// Whether files of ranks have states that are read: a run saved them, with an optimizer that is not
// distributed. Files of ranks that a conversion writes have no such states.
bool has_read_states(const Store& ranks) {
  bool states = false, apart = false;
  for (i64 t = 0; t < ranks.tensor_count(); t++) {
    std::string_view name = ranks.name(t);
    apart |= name.find(".pt:") != name.npos;
    states |= name.substr(std::min(name.find('/'), name.size())).starts_with("/optimizer");
  }
  return states && !apart;
}

void note_names(Sides& sides, bool two_models, i64 main_weights) {
  const CheckpointModel &to = *sides.tested.sharded, &from = *sides.source.sharded;
  Spelling other;
  other.rows = to.spelling_on_disk().rows | from.spelling_on_disk().rows;
  if (!other.usual())
    sides.notes.push_back(cat("names   are compared as usual; those on disk: ", to_string(other)));
  if (main_weights > 0)
    sides.notes.emplace_back(
        "main    the main weights of the optimizer, made of the weights, are compared with the weights");
  if (!two_models && std::ranges::any_of(paired_keys(from.store(), from, to), &PairedKey::resized))
    sides.notes.push_back(cat(
        "vocab   ", with_commas(to.setup().vocab_rows), " rows are compared with ",
        with_commas(from.setup().vocab_rows),
        ": padding that only the other side has is not compared, padding that only this side has must be zeros"));
}

// The two by the keys of fsdp_dtensor. `assets`: the assets of either side; "": neither side has assets, so the model is
// not known. `two_models`: each side is read with its own.
Sides by_keys(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const std::string& assets,
              bool two_models, const CompareOptions& options) {
  const bool other_layers = differ_in_layers(*tested, *source);
  const bool state_dict = dcp_dialect(*tested) == DcpDialect::kStateDict;
  const bool to_ranks = tested->driver().ranks_apart;
  const bool to_core = dcp_dialect(*tested) == DcpDialect::kTorchDist;
  // A list of differences has what each side has: no conversion left anything out, and nothing is made of it.
  const bool made = !options.counting.all;
  const Into into{.v2 = made && state_dict && dcp_dialect(*source) != DcpDialect::kStateDict,
                  .ranks_of_weights = made && to_ranks && !has_read_states(*tested),
                  .casts = made && (to_ranks || to_core)};
  const bool without_states = options.weights_only || into.ranks_of_weights;
  CheckpointOptions how = options.opening;
  how.names = KeyNames::kToCompare, how.records_apart = true;
  how.states = without_states ? StateUse::kLeftOfRanks : StateUse::kRead;
  how.any_model = assets.empty();
  if (!assets.empty() && !two_models) how.assets = assets;
  // Bytes of two runs are compared, whatever weights a config takes them for; the args are compared as well.
  how.accept.push_back(Code::kContradiction);
  Sides out{.compared_as = "tensors of the same names, as fsdp_dtensor has them"};
  const std::string root = source->root();
  out.source = open_sharded(std::move(source), {.source = root, .how = how});
  out.tested = open_tested(std::move(tested), how, options);
  out.one_model = !two_models;
  const CheckpointModel &to = *out.tested.sharded, &from = *out.source.sharded;
  i64 main_weights = 0;
  if (to_core && made) {
    auto completed = std::make_unique<WithMainWeights>(from, to.store());
    main_weights = completed->made();
    out.completed = std::move(completed);
  }
  note_names(out, two_models, main_weights);
  out.changes = changes_under_keys(to, from, into, options);
  if (other_layers)
    out.objects_apart = kOtherLayers;
  else if (!without_states && !(made && state_dict) && !two_models)
    out.options = option_differences(to, from);
  return out;
}

Sides by_own_names(std::unique_ptr<Store> tested, std::unique_ptr<Store> source,
                   const CompareOptions& options) {
  Sides out = plain_sides(std::move(tested), std::move(source));
  out.changes = changes_under_own_names(out.tested_store(), out.source_store(), options);
  out.takes_type = types_asked_of(out.tested_store(), out.source_store(), options);
  return out;
}

}  // namespace

Sides sides_of_megatron(std::unique_ptr<Store> tested, std::unique_ptr<Store> source,
                        const CompareOptions& options) {
  std::string assets = options.opening.assets.value_or(own_assets(*tested));
  if (assets.empty()) assets = own_assets(*source);
  Models models = Models::kOne;
  auto open = [&]() -> Sides {
    if (assets.empty() && differ_in_groups(*tested, *source))
      return without_groups(std::move(tested), std::move(source), options);
    models = models_of(*tested, *source, assets, options.opening);
    const bool one_dialect =
        dcp_dialect(*tested) == dcp_dialect(*source) || is_dcp_of_own_names(*tested, *source);
    if (models != Models::kTwoByOwnNames && (!assets.empty() || !one_dialect))
      return by_keys(std::move(tested), std::move(source), assets, models == Models::kTwo, options);
    return by_own_names(std::move(tested), std::move(source), options);
  };
  Sides out = open();
  if (models != Models::kOne)
    out.notes.insert(out.notes.begin(), "model   the two are not of one model, and are compared by name");
  out.names_states = options.weights_only;
  return out;
}

}  // namespace mckpt::impl
