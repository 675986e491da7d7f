// Compares two checkpoints of one model:
//
//   of two formats, or a known model    under the names of fsdp_dtensor
//   with differently grouped layers     under the names without groups, if the model is not known
//   of a model that is not known        under their own names
//   of two models                       under their own names, or of two formats under those of fsdp_dtensor
#include <algorithm>

#include "convert/compare/against.h"
#include "convert/compare/checks/types.h"
#include "convert/compare/compare.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/differences/tensors.h"
#include "convert/compare/main_weights.h"
#include "convert/compare/object_check.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "convert/keys/main_type.h"
#include "convert/layers/model_layers.h"
#include "convert/objects/pattern_args.h"
#include "convert/open/checkpoint.h"
#include "convert/open/options.h"
#include "convert/open/own_model.h"
#include "convert/open/source_model.h"
#include "convert/own/own_names.h"
#include "convert/own/saved_states.h"
#include "core/base/error.h"
#include "core/base/error_code.h"
#include "core/base/notes.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "core/items/dtype.h"
#include "hf/config/unlike_settings.h"
#include "hf/folder/name_words.h"
#include "io/dcp/check/check.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr const char* kOtherLayers =
    "args and settings name the layers, and the two sides name the layers differently";

// Whether the training runs name the layers differently: one of them trained a GPT model and one a hybrid, or
// the groups differ.
bool differ_in_layers(const Store& tested, const Store& source) {
  std::optional<LayerPattern> a = pattern_of_run(tested), b = pattern_of_run(source);
  return a.has_value() != b.has_value() || (a && a->text != b->text);
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

constexpr const char* kNoStates = "weights only";
constexpr const char* kNoPlace = "Megatron-FSDP v2 has no place for them";

// Reports the first state of the optimizer that the tested side has, if the conversion leaves them out.
void report_states(const Store& tested, const Comparing& c) {
  if (!c.options.weights_only) return;
  const SavedStates states(tested);
  for (i64 t = 0; t < tested.tensor_count(); t++) {
    if (!states.has(tested.name(t))) continue;
    c.comparison.leave_out(
        {.code = Code::kUnequal,
         .tensor = std::string(tested.name(t)),
         .message = "a state of the optimizer is here, which a conversion of the weights only leaves out"},
        {UnlikeTensor::Kind::kOnlyTested, std::string(tested.name(t)), type_and_shape(tested, t)});
    return;
  }
}

// What a conversion that keeps the names leaves out.
Intended intended_under_own_names(const Store& source, const CompareOptions& options) {
  if (!options.weights_only) return {};
  return {.left_out = [states = SavedStates(source)](std::string_view name) {
    return states.has(name) ? kNoStates : "";
  }};
}

// What a conversion changes in checkpoints with the model's own names: it casts weights, and no state of the
// optimizer. Refers to both stores.
Intended intended_under_own_names(const Store& tested, const Store& source, const CompareOptions& options) {
  Intended out = intended_under_own_names(source, options);
  if (!has_own_names(tested) || !has_own_names(source)) return out;
  out.type = [&source, cast = intended_casts(tested, source).type](i64 t) {
    return is_of_states(source.name(t)) ? source.dtype(t) : cast(t);
  };
  return out;
}

// By tensor of a source with the model's own names, whether a type that was asked for is for it. Empty: for all,
// as in stores whose model is not found.
std::vector<bool> types_asked_of(const Store& tested, const Store& source, const CompareOptions& options) {
  if (options.types.kind != TypeClaim::kGiven || !has_own_names(tested) || !has_own_names(source)) return {};
  try {
    return takes_type(source);
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return {};
  }
}

// What a conversion changes under the names of fsdp_dtensor. `to_v2`: the result is what Megatron-FSDP v2
// saves, and its source is not, so weights of the model become fp32, and there is no place beside the state
// dict. `to_ranks`: the result is files of ranks, which have weights only.
Intended intended(const CheckpointModel& source, bool to_v2, bool to_ranks, const CompareOptions& options) {
  Intended out = intended_under_own_names(source.store(), options);
  if (to_ranks)
    out.left_out = [](std::string_view name) -> std::string {
      bool written = model_key(name) || name == "args" || name == "checkpoint_version" || name == "iteration";
      return written ? "" : kNoStates;
    };
  if (!to_v2) return out;
  bool weights_only = options.weights_only;
  out.left_out = [weights_only](std::string_view name) -> std::string {
    if (is_of_optimizer(name)) return weights_only ? kNoStates : "";
    return model_key(name) ? "" : kNoPlace;
  };
  out.type = [&source](i64 tensor) {
    std::optional<std::string> key = model_key(source.store().name(tensor));
    DType type = source.store().dtype(tensor);
    return key ? main_type(source.keys(), *key, type) : type;
  };
  return out;
}

// Whether the keys of the tested side are stored in the types that the conversion was asked for.
bool check_types(const CheckpointModel& to, const CheckpointModel& from, bool state_dict,
                 const Comparing& c) {
  TypeCheck check(c.options.types);
  for (i32 k = 0; k < to.keys().size(); k++) {
    const CheckpointKey& key = to.keys()[k];
    i32 at = to.tensor_of_key(key.name), of = from.tensor_of_key(key.name);
    if (at < 0 || of < 0) continue;
    std::string_view name = to.store().name(at);
    DType own = from.store().dtype(of);
    check.add(name, check.claim().of(to.keys().parameter(key), name, own, state_dict), to.store().dtype(at));
  }
  return check.add_to(c.report);
}

// Compares two hybrid models under the names that their layers have without groups. Their args are not
// compared.
bool without_groups(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const Comparing& c) {
  DcpDialect dialect = *dcp_dialect(*tested);
  for (std::unique_ptr<Store>* side : {&tested, &source})
    if (has_grouped_layers(**side)) *side = with_flat_layers(std::move(*side), dialect);
  objects_not_compared(kOtherLayers, c.report);
  report_states(*tested, c);
  c.report.compared_as = "tensors of the same names, as a model without groups of layers has them";
  c.observer.note(
      {Note::Kind::kNote, "layers  are compared under the names that they have in a model without groups"});
  bool types = check_types_by_name(*tested, *source, c);
  return against_names(*tested, *source, nullptr, c, intended_under_own_names(*source, c.options)) && types;
}

// The options that give ranks describe the source; the tested side has options of its own.
CheckpointModel open_tested(std::unique_ptr<Store> tested, CheckpointOptions how,
                            const CompareOptions& options) {
  how.source_tp = options.path_tp, how.tp_setting = "path_tp";
  how.source_etp = options.path_etp, how.etp_setting = "path_etp";
  try {
    return open_checkpoint(std::move(tested), how);
  } catch (Error& e) {
    if (e.code() == Code::kUnknownPartition)
      e.help("give the number of ranks with `path_tp` N, for experts with `path_etp` N");
    throw;
  }
}

// The tensors that are stored fused, rank after rank, on either side: if different numbers of ranks wrote
// them, they are compared over the items of the model's own tensors. And the vocabulary with its states, if
// one side has more padding.
FusedTables fused_tensors(const Store& source, const CheckpointModel& from, const CheckpointModel& to) {
  FusedTables fused{from.keys(), to.keys(), {}};
  for (i64 t = 0; t < source.tensor_count(); t++) {
    std::optional<std::string> key = model_key(source.name(t));
    if (std::optional<StateName> state = state_name(source.name(t))) key = state->key;
    i32 mine = key ? from.keys().find(*key) : -1, theirs = key ? to.keys().find(*key) : -1;
    bool by_cell = mine >= 0 && mine == theirs && (from.keys()[mine].by_cell || to.keys()[mine].by_cell);
    fused.key_of.push_back(by_cell ? mine : -1);
    fused.resized.push_back(mine >= 0 && theirs >= 0 &&
                            from.keys().parameter(from.keys()[mine]).row->rule == "vocab" &&
                            from.keys()[mine].shape != to.keys()[theirs].shape);
  }
  return fused;
}

void note_spelling(const CheckpointModel& tested, const CheckpointModel& source, Observer& observer) {
  Spelling other;
  other.rows = tested.spelling_on_disk().rows | source.spelling_on_disk().rows;
  if (other.usual()) return;
  observer.note({Note::Kind::kNote, cat("names   are compared as usual; those on disk: ", to_string(other))});
}

// Whether files of ranks have states that are read: a run saved them, with an optimizer that is not
// distributed. What a conversion writes has none.
bool has_read_states(const Store& ranks) {
  bool states = false, apart = false;
  for (i64 t = 0; t < ranks.tensor_count(); t++) {
    std::string_view name = ranks.name(t);
    apart |= name.find(".pt:") != name.npos;
    states |= name.substr(std::min(name.find('/'), name.size())).starts_with("/optimizer");
  }
  return states && !apart;
}

// Compares the two sides by the keys of fsdp_dtensor. `assets`: the assets of either side; "": neither side
// has assets, so the model is not known. `two_models`: each side is read with its own.
bool by_keys(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const std::string& assets,
             bool two_models, const Comparing& c) {
  c.report.compared_as = "tensors of the same names, as fsdp_dtensor has them";
  bool other_layers = differ_in_layers(*tested, *source);
  bool state_dict = dcp_dialect(*tested) == DcpDialect::kStateDict;
  bool to_v2 = state_dict && dcp_dialect(*source) != DcpDialect::kStateDict;
  bool to_ranks = tested->driver().ranks_apart;
  bool to_core = dcp_dialect(*tested) == DcpDialect::kTorchDist;
  CheckpointOptions how = c.options.opening;
  how.names = KeyNames::kToCompare, how.records_apart = true;
  const bool ranks_of_weights = to_ranks && !has_read_states(*tested);
  const bool without_states = c.options.weights_only || ranks_of_weights;
  how.states = without_states ? StateUse::kLeftOfRanks : StateUse::kRead;
  how.any_model = assets.empty();
  if (!assets.empty() && !two_models) how.assets = assets;
  CheckpointModel from = open_checkpoint(std::move(source), how);
  CheckpointModel to = open_tested(std::move(tested), how, c.options);
  c.note_oddities(from);
  c.note_oddities(to);
  note_spelling(to, from, c.observer);
  const WithMainWeights completed(from, to.store());
  // A list of differences has what each side has, and nothing that is made of it.
  const bool with_main = to_core && !c.options.counting.all;
  const Store& compared = with_main ? static_cast<const Store&>(completed) : from.store();
  if (with_main && completed.made() > 0)
    c.observer.note(
        {Note::Kind::kNote,
         "main    the main weights of the optimizer, made of the weights, are compared with the weights"});
  FusedTables fused =
      two_models ? FusedTables{from.keys(), to.keys(), {}} : fused_tensors(compared, from, to);
  if (std::ranges::find(fused.resized, true) != fused.resized.end())
    c.observer.note({Note::Kind::kNote, cat("vocab   ", with_commas(to.setup().vocab_rows),
                                            " rows are compared with ", with_commas(from.setup().vocab_rows),
                                            ": padding that only the other side has is not compared, padding that only this side has must be zeros")});
  Intended changes = intended(from, to_v2, ranks_of_weights, c.options);
  // Conversions into these formats cast, so weights have whatever type they have here; check_types() has the
  // claim.
  if (to_ranks || to_core)
    changes.type = [&](i64 tensor) {
      if (tensor >= from.store().tensor_count()) return DType::kF32;
      std::optional<std::string> key = model_key(from.store().name(tensor));
      i32 own = key ? to.tensor_of_key(*key) : -1;
      return own >= 0 ? to.store().dtype(own) : from.store().dtype(tensor);
    };
  report_states(to.store(), c);
  bool same = true;
  if (other_layers)
    objects_not_compared(kOtherLayers, c.report);
  else
    same = compare_objects(
        to, from, changes, c,
        without_states || state_dict || two_models ? std::nullopt : option_differences(to, from));
  same &= check_types(to, from, state_dict, c);
  return against_names(to.store(), compared, two_models ? nullptr : &fused, c, changes) && same;
}

std::string config_in(const std::string& assets, const OpenOptions& opening) {
  const Folder folder(assets, opening);
  return folder.has_file("config.json") ? json_text(folder.open_file("config.json")) : "";
}

// Whether both sides have the config of a model, and these are two models. The tensors of one cannot be read with
// the config of the other.
bool have_two_models(const Store& tested, const Store& source) {
  const std::string one = own_assets(tested), other = own_assets(source);
  if (one.empty() || other.empty()) return false;
  const std::string here = config_in(one, tested.opening()), there = config_in(other, source.opening());
  if (here.empty() || there.empty()) return false;
  return !unlike_sizes(here, there).empty();
}

// Whether the store, which has no assets, is no checkpoint of the model in those of the other side.
bool is_of_another_model(const Store& store, const std::string& assets, CheckpointOptions how) {
  if (!own_assets(store).empty()) return false;
  how.names = KeyNames::kToCompare, how.states = StateUse::kLeftOfRanks, how.records_apart = true;
  how.assets = assets;
  how.source_tp.reset(), how.source_etp.reset();
  try {
    open_checkpoint(open_store(store.root(), store.opening()), how);
    return false;
  } catch (const Error& e) {
    return e.code() == Code::kContradiction || e.code() == Code::kUnaccounted ||
           e.code() == Code::kSourceShape;
  }
}

// How the two sides are compared that are checkpoints of one model, or not.
enum class Models : u8 { kOne, kTwo, kTwoByOwnNames };
Models models_of(const Store& tested, const Store& source, const std::string& assets, const Comparing& c) {
  if (c.options.opening.assets || assets.empty()) return Models::kOne;
  const bool one_format = dcp_dialect(tested) == dcp_dialect(source) && tested.format() == source.format();
  if (have_two_models(tested, source)) return one_format ? Models::kTwoByOwnNames : Models::kTwo;
  for (const Store* side : {&tested, &source})
    if (one_format && is_of_another_model(*side, assets, c.options.opening)) return Models::kTwoByOwnNames;
  return Models::kOne;
}

}  // namespace

bool against_checkpoint(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const Comparing& c) {
  std::string assets = c.options.opening.assets.value_or(own_assets(*tested));
  if (assets.empty()) assets = own_assets(*source);
  if (assets.empty() && differ_in_groups(*tested, *source))
    return without_groups(std::move(tested), std::move(source), c);
  const Models models = models_of(*tested, *source, assets, c);
  if (models != Models::kOne)
    c.observer.note({Note::Kind::kNote, "model   the two are not of one model, and are compared by name"});
  const bool one_dialect =
      dcp_dialect(*tested) == dcp_dialect(*source) || is_dcp_of_own_names(*tested, *source);
  if (models != Models::kTwoByOwnNames && (!assets.empty() || !one_dialect))
    return by_keys(std::move(tested), std::move(source), assets, models == Models::kTwo, c);
  report_states(*tested, c);
  Intended changes = intended_under_own_names(*tested, *source, c.options);
  bool same = compare_objects(*tested, *source, changes, c);
  same &= check_types_by_name(*tested, *source, c, types_asked_of(*tested, *source, c.options));
  return against_names(*tested, *source, nullptr, c, changes) && same;
}

}  // namespace mckpt::impl
