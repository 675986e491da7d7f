// Two checkpoints of one model:
//
//   of two formats, or a known model    under the names of fsdp_dtensor
//   with differently grouped layers     under the names without groups, if the model is not known
//   of a model that is not known        under their own names
//   with the buffers of one optimizer   under their own names, if both have the same ones
//   of two models                       under their own names, or of two formats under the names of fsdp_dtensor
#include <algorithm>
#include <set>
#include <string_view>

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
#include "io/dcp/keys/buckets.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

std::string pattern_text(const Store& store) {
  const std::optional<LayerPattern> pattern = pattern_of_run(store);
  return pattern ? pattern->text : "no pattern";
}

// Why args and settings are not compared.
std::string other_layers_text(const Store& tested, const Store& source) {
  return cat("args and settings name the layers, and the two sides name the layers differently: ",
             pattern_text(tested), " and ", pattern_text(source));
}

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
  std::string why = other_layers_text(*tested, *source);
  for (std::unique_ptr<Store>* side : {&tested, &source})
    if (has_grouped_layers(**side)) *side = with_flat_layers(std::move(*side), dialect);
  Sides out = plain_sides(std::move(tested), std::move(source));
  out.objects_apart = std::move(why);
  out.compared_as = "tensors of the same names, as a model without groups of layers has them";
  out.notes.emplace_back("layers  are compared under the names that they have in a model without groups");
  out.changes = changes_under_own_names(out.source_store(), options);
  return out;
}

// A list of differences has no option that leaves states out.
Opened open_listed(std::unique_ptr<Store> store, const CheckpointOptions& how, bool listed) {
  try {
    const std::string root = store->root();
    return open_sharded(std::move(store), {.source = root, .how = how});
  } catch (Error& e) {
    if (listed && e.code() == Code::kNotHeld)
      e.help(
          "`weights_only` of mckpt convert reshard makes a checkpoint without the states, which can be compared");
    throw;
  }
}

// The options that give ranks describe the source; the tested side has options of its own.
Opened open_tested(std::unique_ptr<Store> tested, CheckpointOptions how, const CompareOptions& options) {
  how.source_tp = options.path_tp, how.tp_setting = options.path_tp_setting;
  how.source_etp = options.path_etp, how.etp_setting = options.path_etp_setting;
  try {
    return open_listed(std::move(tested), how, options.counting.all);
  } catch (Error& e) {
    if (e.code() == Code::kUnknownPartition)
      e.help("give the number of ranks with `path_tp` N, for experts with `path_etp` N");
    throw;
  }
}

// Whether the tensor is in another file of its rank than the model, as the states of a distributed optimizer
// are.
bool is_in_other_file(std::string_view name) { return name.find(".pt:") != name.npos; }

// Whether files of ranks have states: a run saved them. Files of ranks that a conversion writes have none.
bool has_states(const Store& ranks) {
  for (i64 t = 0; t < ranks.tensor_count(); t++) {
    const std::string_view name = ranks.name(t);
    if (is_in_other_file(name)) return true;
    if (name.substr(std::min(name.find('/'), name.size())).starts_with("/optimizer")) return true;
  }
  return false;
}

bool has_gathered_states(const Store& store) {
  return std::ranges::any_of(store.objects(), [](const Object& o) { return is_gathered_states(o.name); });
}

// Names of states that are not stored by parameter, but in stretches of the buffers of one run.
std::set<std::string_view> states_of_buffers(const Store& store) {
  std::set<std::string_view> out;
  const bool ranks = store.driver().ranks_apart;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (ranks ? is_in_other_file(store.name(t)) : is_bucket(store.name(t))) out.insert(store.name(t));
  for (const Object& o : store.objects())
    if (is_gathered_states(o.name)) out.insert(o.name);
  return out;
}

// Whether two saves of one format have such states under the same names. Each item of these two has the same
// place, and under the names of parameters the states have none.
bool have_the_same_buffers(const Store& tested, const Store& source) {
  if (tested.driver().ranks_apart != source.driver().ranks_apart) return false;
  const std::set<std::string_view> buffers = states_of_buffers(tested);
  return !buffers.empty() && buffers == states_of_buffers(source);
}

// How states of no parameter are read. Gathered ones are objects, which two folders of torch_dist have under
// one name and a conversion leaves out: where they could be lost without a word they are refused.
StateUse use_of_states(const Store& tested, const Store& source, bool listed) {
  const bool gathered = has_gathered_states(tested) || has_gathered_states(source);
  const bool torch_dist =
      dcp_dialect(tested) == DcpDialect::kTorchDist && dcp_dialect(source) == DcpDialect::kTorchDist;
  return gathered && !(listed && torch_dist) ? StateUse::kRead : StateUse::kAsStored;
}

// `made`: the tested side may be made of the source; else padding that one side alone has is not compared.
void note_names(Sides& sides, bool two_models, bool made, i64 main_weights) {
  const CheckpointModel &to = *sides.tested.sharded, &from = *sides.source.sharded;
  Spelling other;
  other.rows = to.spelling_on_disk().rows | from.spelling_on_disk().rows;
  if (!other.usual())
    sides.notes.push_back(cat("names   are compared as usual; those on disk: ", to_string(other)));
  if (main_weights > 0)
    sides.notes.emplace_back(
        "main    the main weights of the optimizer, made of the weights, are compared with the weights");
  if (made && !two_models && std::ranges::any_of(paired_keys(from.store(), from, to), &PairedKey::resized))
    sides.notes.push_back(cat(
        "vocab   ", with_commas(to.setup().vocab_rows), " rows are compared with ",
        with_commas(from.setup().vocab_rows),
        ": padding that only the other side has is not compared, padding that only this side has must be zeros"));
}

// Tensors of a side in files of ranks that are of neither the model nor the optimizer, such as random states.
void name_others(const CheckpointModel& side, Sides& sides) {
  const Store& disk = side.on_disk();
  BesideModel others{.reason = "of neither the model nor the optimizer"};
  for (i64 t = 0; disk.driver().ranks_apart && t < disk.tensor_count(); t++) {
    const std::string_view name = disk.name(t);
    const std::string_view own = name.substr(std::min(name.find('/') + 1, name.size()));
    if (!is_in_other_file(name) && !own.starts_with("model") && !own.starts_with("optimizer"))
      others.names.emplace_back(name);
  }
  if (!others.names.empty()) sides.beside.push_back(std::move(others));
}

// The two by the keys of fsdp_dtensor. `assets`: the assets of either side; "": neither side has assets, so
// the model is not known. `two_models`: each side is read with its own.
Sides by_keys(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const std::string& assets,
              bool two_models, const CompareOptions& options) {
  const bool other_layers = differ_in_layers(*tested, *source);
  const bool state_dict = dcp_dialect(*tested) == DcpDialect::kStateDict;
  const bool to_ranks = tested->driver().ranks_apart;
  const bool to_core = dcp_dialect(*tested) == DcpDialect::kTorchDist;
  // A list of differences has what each side has: no conversion left anything out, and nothing is made of it.
  const bool made = !options.counting.all;
  const Into into{.v2 = made && state_dict && dcp_dialect(*source) != DcpDialect::kStateDict,
                  .ranks_of_weights = made && to_ranks && !has_states(*tested),
                  .casts = made && (to_ranks || to_core)};
  const bool without_states = options.weights_only || into.ranks_of_weights;
  CheckpointOptions how = options.opening;
  how.names = KeyNames::kToCompare, how.records_apart = true;
  how.states = without_states ? StateUse::kLeftOfRanks : use_of_states(*tested, *source, !made);
  how.any_model = assets.empty();
  if (!assets.empty() && !two_models) how.assets = assets;
  // Bytes of two runs are compared, whatever weights a config takes them for; the args are compared as well.
  how.accept.push_back(Code::kContradiction);
  Sides out{.compared_as = "tensors of the same names, as fsdp_dtensor has them"};
  out.source = open_listed(std::move(source), how, !made);
  out.tested = open_tested(std::move(tested), how, options);
  out.one_model = !two_models;
  const CheckpointModel &to = *out.tested.sharded, &from = *out.source.sharded;
  i64 main_weights = 0;
  if (to_core && made) {
    auto completed = std::make_unique<WithMainWeights>(from, to.store());
    main_weights = completed->made();
    out.completed = std::move(completed);
  }
  note_names(out, two_models, made, main_weights);
  for (const CheckpointModel* side : {&to, &from}) name_others(*side, out);
  out.changes = changes_under_keys(to, from, into, options);
  if (other_layers)
    out.objects_apart = other_layers_text(to.on_disk(), from.on_disk());
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
    const bool by_name = models == Models::kTwoByOwnNames || have_the_same_buffers(*tested, *source);
    if (!by_name && (!assets.empty() || !one_dialect))
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
