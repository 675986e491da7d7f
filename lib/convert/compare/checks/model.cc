// The pairing of tensors and parameters is that of every conversion (mappings/model/accounting.h), so verify
// and the conversions accept the same models. With assets, the checkpoint is opened as an export opens it.
#include "convert/compare/checks/model.h"

#include <algorithm>

#include "convert/source/checkpoint.h"
#include "convert/source/model_folder.h"
#include "convert/source/options.h"
#include "convert/source/own_model.h"
#include "convert/source/source_model.h"
#include "core/base/error.h"
#include "hf/model.h"
#include "hf/unlike_settings.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/store/finding.h"
#include "io/store/open/beside.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

bool is_model_folder(const Store& store) {
  bool safetensors = store.format() == Format::kSafetensorsFolder;
  return safetensors && Folder(store.root(), store.opening()).has_file("config.json") && is_sound(store);
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

}  // namespace

void check_by_assets(const Store& store, const std::string& assets, const std::string& model_dict,
                     int threads, VerifyReport& report) {
  if (is_model_folder(store) || !has_own_names(store)) refuse_model_dict(model_dict, store.root());
  if (store.format() == Format::kMegatronRanks || !is_sound(store)) return;
  if (is_model_folder(store) && real_path_of(assets) == real_path_of(store.root()))
    return check_model(store, report);
  Check check{
      .name = "model", .status = Check::Status::kPass, .count = store.tensor_count(), .unit = "tensors"};
  std::vector<Finding> odd;
  try {
    if (compare_with_assets(store, assets, model_dict, threads, odd).empty()) {
      check = {.name = "model",
               .unit = "tensors",
               .note =
                   "not compared with config.json: neither it nor the files beside it say which tensors "
                   "there are"};
    } else {
      check.note = compare_settings(store, assets, odd);
      if (!odd.empty()) check.status = Check::Status::kWarn;
    }
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    if (is_unknown(e.code())) {
      check = {
          .name = "model", .unit = "tensors", .note = cat("not compared with config.json: ", e.message())};
    } else {
      check.status = Check::Status::kFail;
      odd = {finding_of(e)};
    }
  }
  report.add(std::move(check), std::move(odd));
}

void check_model(const Store& store, VerifyReport& report) {
  if (!is_model_folder(store)) return;
  Check check{"model", Check::Status::kPass, store.tensor_count(), "tensors"};
  try {
    open_hf_model(store.root(), {.files = store.opening()});
    report.add(std::move(check), {});
  } catch (const Error& e) {
    if (e.code() != Code::kUnaccounted) {
      report.add({"model",
                  Check::Status::kNone,
                  0,
                  "tensors",
                  0,
                  {},
                  cat("not compared with config.json: ", e.message())},
                 {});
      return;
    }
    check.status = Check::Status::kFail;
    report.add(std::move(check), {finding_of(e)});
  }
}

}  // namespace mckpt::impl
