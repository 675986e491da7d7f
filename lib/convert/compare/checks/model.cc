// A model of the class that its family's table describes is opened as every conversion opens it
// (mappings/model/accounting.h), so verify and the conversions accept the same models. With assets, the
// checkpoint is opened as an export opens it.
#include "convert/compare/checks/model.h"

#include <algorithm>

#include "convert/open/checkpoint.h"
#include "convert/open/lost_shards.h"
#include "convert/open/options.h"
#include "convert/open/own_model.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/notes.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/config/unlike_settings.h"
#include "hf/folder/assets.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/model_folder.h"
#include "hf/folder/name_words.h"
#include "hf/folder/tied_names.h"
#include "hf/model.h"
#include "hf/quantized/dequantized_store.h"
#include "io/dcp/keys/bridge_adapter.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/store/finding.h"
#include "io/store/open/beside.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"
#include "io/verify/verify.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

bool is_model_folder(const Store& store) {
  if (!store.driver().hf_folder || !is_sound(store)) return false;
  const Folder folder(store.root(), store.opening());
  return folder.has_file("config.json") && (adapted_view(store) || !is_adapter_folder(folder));
}

// With what the error lists: the tensors that are missing.
Finding finding_of(const Error& e) {
  constexpr std::size_t kMostNotes = 5;
  Finding finding = to_finding(e);
  finding.message = e.message();
  for (std::size_t i = 0; i < std::min(e.notes().size(), kMostNotes); i++)
    finding.message += cat("; ", e.notes()[i]);
  if (e.notes().size() > kMostNotes) finding.message += cat("; and ", e.notes().size() - kMostNotes, " more");
  return finding;
}

Check not_compared(std::string_view why) {
  return {.name = "model", .unit = "tensors", .note = cat("not compared with config.json: ", why)};
}

// Errors that say nothing about the checkpoint: mckpt does not know the model.
bool is_unknown(Code code) {
  return code == Code::kUnknownModel || code == Code::kUnsupportedModel || code == Code::kUnknownPartition ||
         code == Code::kModuleMissing;
}

// Compares as an export does. What the names were compared with; empty: nothing says which tensors the model
// has.
std::string compare_with_assets(const Store& store, const std::string& assets,
                                const std::string& model_dict, int threads, std::vector<Finding>& odd) {
  std::unique_ptr<Store> again = open_store(store.root(), store.opening());
  if (!has_own_names(*again)) {
    CheckpointOptions options;
    options.assets = assets;
    options.model.files = store.opening();
    open_checkpoint(std::move(again), options);
    return assets;
  }
  const OwnModel model =
      open_own_model(std::move(again), {.source = store.root(),
                                        .assets = assets,
                                        .model_dict = model_dict,
                                        .threads = threads});
  for (const Note& n : model.notes)
    if (n.kind == Note::Kind::kWarning)
      odd.push_back({.code = Code::kUnaccounted, .message = n.text, .warning = true});
  return model.judged_by;
}

// The names and shapes of a model's tensors, compared with those of its class.
struct Misfits {
  std::vector<std::string> missing, shapes, extra;
};

Misfits misfits_of(std::span<const KnownTensor> expected, const Store& store) {
  Misfits out;
  NameMap<std::string_view, std::span<const i64>> stored;
  NameSet<std::string_view> names;
  for (i64 t = 0; t < store.tensor_count(); t++) stored.emplace(store.name(t), store.dims(t));
  for (const KnownTensor& t : expected) {
    names.insert(t.name);
    const auto at = stored.find(t.name);
    if (at == stored.end())
      out.missing.push_back(escaped(t.name));
    else if (t.dims && !std::ranges::equal(*t.dims, at->second))
      out.shapes.push_back(cat(escaped(t.name), ": expected ", dims_to_string(*t.dims), ", found ",
                               dims_to_string(at->second)));
  }
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (!names.contains(store.name(t)) && !is_computed(store.name(t))) out.extra.emplace_back(store.name(t));
  return out;
}

std::vector<Finding> findings_of(const Misfits& misfits, const std::string& name, const std::string& path) {
  std::vector<Finding> out;
  auto add = [&](Code code, std::string what, std::span<const std::string> lines) {
    Error e(code, std::move(what));
    out.push_back(finding_of(e.file(path).each_note(lines).help(
        "compare architectures in config.json with the tensors, which `mckpt ls` lists")));
  };
  if (!misfits.missing.empty())
    add(Code::kUnaccounted,
        cat("the folder lacks ", counted(std::ssize(misfits.missing), "tensor"), " of the class ", name),
        misfits.missing);
  if (!misfits.shapes.empty())
    add(Code::kSourceShape, cat("tensors do not have the shapes of the class ", name), misfits.shapes);
  const std::vector<std::string_view> extra(misfits.extra.begin(), misfits.extra.end());
  if (!extra.empty())
    out.push_back(
        {.code = Code::kUnaccounted,
         .message = cat("the folder has tensors beside those of the class ", name, ": ", listed(extra)),
         .warning = true});
  return out;
}

// The check of a model of another class than that of its family's table, which has other tensors. A tensor
// that the class does not have is not loaded, and does no harm.
void check_class(const Store& store, const ModelFolder& folder, VerifyReport& report) {
  const std::unique_ptr<Store> weights =
      dequantized(open_safetensors_folder(store.root(), store.opening()), quant_declaration_of(store),
                  DType::kBF16, BadNumbers::kShow);
  Notes notes;
  const std::vector<KnownTensor> expected = class_tensors(folder, *weights, notes);
  if (expected.empty()) {
    report.add(not_compared(no_table_text(folder)), {});
    return;
  }
  std::vector<Finding> found =
      findings_of(misfits_of(expected, *weights), escaped(folder.config->architecture), store.root());
  for (const Note& n : notes)
    if (n.kind == Note::Kind::kWarning)
      found.push_back({.code = Code::kUnaccounted, .message = n.text, .warning = true});
  const Check::Status status = status_of(found);
  report.add({"model", status, store.tensor_count(), "tensors"}, std::move(found));
}

// Whether config.json names a class that its family's table does not describe. A map says itself which tensors
// the model has.
bool has_other_class(const Store& store, const ModelFolder& folder) {
  return folder.config && class_of(*folder.config).relation != ClassRelation::kOfTable &&
         folder_map_text(Folder(store.root(), store.opening())).empty();
}

// A text of two config.json: up to five settings that differ.
std::string settings_text(const std::vector<UnlikeSetting>& unlike) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> parts;
  for (const UnlikeSetting& u : unlike)
    parts.push_back(u.one == u.other ? u.key : cat(u.key, " ", u.one, ", and ", u.other, " there"));
  std::string out;
  for (std::size_t i = 0; i < std::min(parts.size(), kMost); i++) out += cat(i == 0 ? "" : "; ", parts[i]);
  if (parts.size() > kMost) out += cat("; and ", parts.size() - kMost, " more");
  return out;
}

// Compares the settings with those of the checkpoint's own config.json, which decide what the model computes
// and are not seen in names and shapes. Returns what was not compared.
std::string compare_settings(const Store& store, const std::string& assets, std::vector<Finding>& odd) {
  constexpr const char* kNotCompared = "names and shapes, not the settings of config.json";
  try {
    const ModelFolder own = find_model_folder(store, store.root(), std::nullopt);
    if (own.path.empty() || real_path_of(own.path) == real_path_of(assets)) return kNotCompared;
    auto text = [&](const std::string& folder) {
      return json_text(Folder(folder, store.opening()).open_file("config.json"));
    };
    const std::vector<UnlikeSetting> unlike = unlike_settings(text(assets), text(own.path));
    if (!unlike.empty())
      odd.push_back({.code = Code::kContradiction,
                     .message = cat("the config.json of `assets` has other settings than ", own.path,
                                    "/config.json: ", settings_text(unlike)),
                     .warning = true});
    return "";
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return kNotCompared;  // a config that cannot be read is reported as a file beside the checkpoint
  }
}

bool declares_codes(const Store& store) {
  try {
    return quant_declaration_of(store).config.has_value();
  } catch (const Error&) {
    return true;
  }
}

// An error of opening the model is a problem where tensors and config are not of one model, and a warning where
// the config by itself cannot be understood: transformers may have a default for what is missing there. Weights
// that the config declares quantised in a way that is not decoded have a check of their own.
void judge_config(const Store& store, const Error& e, VerifyReport& report) {
  const bool declared = e.code() == Code::kQuantized && declares_codes(store);
  if (is_unknown(e.code()) || declared) return report.add(not_compared(e.message()), {});
  const bool fails = e.code() == Code::kUnaccounted || e.code() == Code::kSourceShape;
  Finding finding = finding_of(e);
  finding.warning = !fails;
  Check check{"model", fails ? Check::Status::kFail : Check::Status::kWarn, 0, "tensors"};
  if (fails) check.count = store.tensor_count();
  if (!fails) check.note = "not compared with config.json";
  report.add(std::move(check), {std::move(finding)});
}

}  // namespace

void check_by_assets(const Store& store, const std::string& assets, const std::string& model_dict,
                     int threads, VerifyReport& report) {
  if (is_model_folder(store) || !has_own_names(store)) refuse_model_dict(model_dict, store.root());
  if (store.driver().ranks_apart || !is_sound(store)) return;
  if (is_model_folder(store) && real_path_of(assets) == real_path_of(store.root()))
    return check_model(store, threads, report);
  Check check{
      .name = "model", .status = Check::Status::kPass, .count = store.tensor_count(), .unit = "tensors"};
  std::vector<Finding> odd;
  try {
    if (is_adapter_alone(store)) {
      check = not_compared("the checkpoint has an adapter, and not the model that it changes");
    } else if (compare_with_assets(store, assets, model_dict, threads, odd).empty()) {
      check = not_compared("neither it nor the files beside it say which tensors there are");
    } else {
      check.note = compare_settings(store, assets, odd);
      check.status = status_of(odd);
    }
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    if (is_unknown(e.code())) {
      check = not_compared(e.message());
    } else if (e.code() == Code::kUnsupportedTensor && has_bridge_adapter(store)) {
      check.note = cat(e.found(), " beside the base are not compared");
    } else {
      check.status = Check::Status::kFail;
      odd = {finding_of(e)};
    }
  }
  report.add(std::move(check), std::move(odd));
}

// Shards say how large tensors are by the pieces that are there, so the config has to say it. Without one
// the checkpoint may be a part of one, which is no fault that is seen.
void check_shards(const Store& store, int threads, VerifyReport& report) {
  const ModelFolder folder = find_model_folder(store, store.root(), std::nullopt);
  if (!folder.path.empty()) return check_by_assets(store, folder.path, "", threads, report);
  report.add({"model", Check::Status::kWarn, store.tensor_count(), "tensors"},
             {{.code = Code::kShardMissing,
               .message = unknown_shards("no config.json is beside them"),
               .warning = true}});
}

// Throws kUnaccounted for an output layer with values of its own beside the one embedding that config.json, in
// `folder`, ties it to.
void refuse_unlike_head(const Store& store, const std::string& folder, int threads) {
  std::vector<i64> heads, embeddings;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    if (is_of_states(store.name(t))) continue;
    if (is_head(store.name(t))) heads.push_back(t);
    if (is_embedding(store.name(t))) embeddings.push_back(t);
  }
  if (heads.size() != 1 || embeddings.size() != 1) return;
  const i64 head = heads[0], embedding = embeddings[0];
  if (tie_of_names(store.name(head), store.name(embedding)) != Tie::kHead ||
      store.dtype(head) != store.dtype(embedding) ||
      !std::ranges::equal(store.dims(head), store.dims(embedding)))
    return;
  const std::pair<i64, i64> pair(head, embedding);
  if (have_same_bytes(store, std::span(&pair, 1), threads)[0]) return;
  throw Error(Code::kUnaccounted, "the output layer differs from the embedding, though the model ties them")
      .file(store.root())
      .tensor(store.name(head))
      .note(cat("the tie is that of ", escaped(folder, 4096), "/config.json"));
}

// Adds the check if the checkpoint is not what its own config.json says, or the config says nothing: an export
// would be refused. A config that fits is one of the assets, and no other line.
void check_own_config(const Store& store, int threads, VerifyReport& report) {
  const bool failed =
      std::ranges::any_of(report.checks, [](const Check& c) { return c.status == Check::Status::kFail; });
  if (store.driver().ranks_apart || failed || !is_sound(store)) return;
  const bool own_names = has_own_names(store);
  try {
    if (own_names) {
      if (store.driver().open_ended) return check_shards(store, threads, report);
      const ModelFolder folder = find_model_folder(store, store.root(), std::nullopt);
      if (folder.tied.value_or(false)) refuse_unlike_head(store, folder.path, threads);
      return;
    }
    if (own_assets(store).empty()) return;
    CheckpointOptions options;
    options.model.files = store.opening();
    open_checkpoint(open_store(store.root(), store.opening()), options);
  } catch (const Error& e) {
    constexpr Code kOfConfig[] = {Code::kBadJson, Code::kBadConfig, Code::kUnaccounted, Code::kContradiction,
                                  Code::kSourceShape};
    if (e.code() == Code::kInterrupted) throw;
    if (std::ranges::find(kOfConfig, e.code()) == std::end(kOfConfig)) return;
    report.add({"model", Check::Status::kFail, store.tensor_count(), "tensors"}, {finding_of(e)});
  }
}

void check_model(const Store& store, int threads, VerifyReport& report) {
  if (!is_model_folder(store)) return check_own_config(store, threads, report);
  try {
    const ModelFolder folder = find_model_folder(store, store.root(), store.root());
    if (has_other_class(store, folder)) return check_class(store, folder, report);
    refuse_unlike_copies(open_hf_model(store.root(), {.files = store.opening()}), threads);
    report.add({"model", Check::Status::kPass, store.tensor_count(), "tensors"}, {});
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    judge_config(store, e, report);
  }
}

}  // namespace mckpt::impl
