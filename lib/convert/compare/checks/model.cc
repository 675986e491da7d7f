// A model of the class that its family's table describes is opened as every conversion opens it
// (mappings/model/accounting.h), so verify and the conversions accept the same models. With assets, the
// checkpoint is opened as an export opens it.
#include "convert/compare/checks/model.h"

#include <algorithm>

#include "convert/compare/checks/model_class.h"
#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "core/base/error.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/config/refused_settings.h"
#include "hf/config/unlike_settings.h"
#include "hf/folder/assets.h"
#include "hf/folder/front_of_names.h"
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
#include "io/store/names/torch_names.h"
#include "io/store/open/beside.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

bool is_model_folder(const Store& store) {
  if (!store.driver().hf_folder || !is_sound(store)) return false;
  const Folder folder(store.root(), store.opening());
  return folder.has_file("config.json") && (adapted_view(store) || !is_adapter_folder(folder));
}

// Errors that say nothing about the checkpoint: mckpt does not know the model.
bool is_unknown(Code code) {
  return code == Code::kUnknownModel || code == Code::kUnsupportedModel || code == Code::kUnknownPartition ||
         code == Code::kModuleMissing;
}

// The answer of opening a model under its own names: what it was compared with; or why it could not be
// compared, which is in `odd` too if it is a fault of the config.
struct Judged {
  bool compared = false;
  std::string why{};  // "": the finding says it
};

void add_unlike(std::span<const std::string> pairs, const std::string& folder, std::vector<Finding>& odd) {
  for (const std::string& pair : pairs) odd.push_back(unlike_tie_finding(pair, folder));
}

// Warnings of settings that transformers refuses, in the folder with the config. A config that cannot be read
// is a finding of its own.
void add_refused_settings(const std::string& folder, const OpenOptions& opening, std::vector<Finding>& odd) {
  try {
    for (std::string& text : refused_settings(json_text(Folder(folder, opening).open_file("config.json"))))
      odd.push_back({.code = Code::kBadConfig, .message = std::move(text), .warning = true});
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
  }
}

bool are_pytorch_model(const Store& store) {
  if (format_family(store.format()) != FormatFamily::kTorch) return false;
  return std::ranges::all_of(store.files(), [&](const StoreFile& file) {
    return is_pytorch_model(file.path.empty() ? store.root() : file.path);
  });
}

// A warning of names that transformers does not find in the file, because it takes nothing off them. It knows
// the front of a base model, as "model." is for the class LlamaModel.
void add_wrapped_names(const Store& store, const OwnModel& own, std::vector<Finding>& odd) {
  if (!are_pytorch_model(store)) return;
  const std::string front = own.section.substr(own.section.find(':') + 1);
  const std::string& of_class = own.folder.architecture;
  const bool is_base = of_class.ends_with("Model") && !of_class.ends_with("LMHeadModel") &&
                       front != "module." && std::ranges::count(front, '.') == 1;
  std::string in_front = is_base ? "" : front;
  for (i64 t = 0; in_front.empty() && t < store.tensor_count(); t++)
    if (const std::string_view name = store.name(t); !is_beside_model(name) && without_wrappers(name) != name)
      in_front = name;
  if (in_front.empty()) return;
  odd.push_back({.code = Code::kUnaccounted,
                 .message = cat("the names in the file have wrappers, such as ", escaped(in_front),
                                ", which transformers does not take off: it does not load these tensors"),
                 .help = "`mckpt export` writes a folder without them",
                 .warning = true});
}

// A safetensors folder without layers of multi-token prediction is complete, and so is any other checkpoint.
Judged judged(const Opened& opened, std::vector<Finding>& odd) {
  const ModelFolder& folder = opened.own->folder;
  add_unlike(opened.own->unlike, folder.around ? folder.path : "", odd);
  const std::string fault = fault_of_config(folder);
  for (const Note& n : opened.notes)
    if (n.kind == Note::Kind::kWarning && n.text != fault && n.text != kWithoutPrediction)
      odd.push_back({.code = Code::kUnaccounted, .message = n.text, .warning = true});
  if (!fault.empty()) {
    odd.push_back(finding_of(*folder.not_read));
    odd.back().warning = true;
  }
  if (!opened.own->judged_by.empty()) return {.compared = true};
  if (!fault.empty()) return {};
  if (folder.not_read) return {.why = folder.not_read->message()};
  if (folder.config) return {.why = no_table_text(folder)};
  return {.why = "neither it nor the files beside it say which tensors there are"};
}

// The check of it.
Check check_of(const Store& store, const Judged& judged, const std::vector<Finding>& odd) {
  if (judged.compared)
    return {.name = "model", .status = status_of(odd), .count = store.tensor_count(), .unit = "tensors"};
  if (!judged.why.empty()) return not_compared(judged.why);
  return {
      .name = "model", .status = status_of(odd), .unit = "tensors", .note = "not compared with config.json"};
}

// Compares as an export does.
Judged compare_with_assets(const Store& store, const std::string& assets, const std::string& model_dict,
                           std::span<const Code> accept, int threads, std::vector<Finding>& odd) {
  std::unique_ptr<Store> again = open_store(store.root(), store.opening());
  if (!has_own_names(*again)) {
    OpenAs how{.source = store.root()};
    how.how.assets = assets;
    how.how.accept.assign(accept.begin(), accept.end());
    how.how.model.files = store.opening();
    const Opened opened = open_sharded(std::move(again), how);
    odd = facts_unlike_config(*opened.sharded);
    return {.compared = true};
  }
  return judged(open_own(std::move(again), {.source = store.root(),
                                            .assets = assets,
                                            .model_dict = model_dict,
                                            .keep_unlike_heads = true,
                                            .threads = threads}),
                odd);
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

// Compares the settings with the checkpoint's own config.json: settings that decide what the model computes
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
    if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
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

// An error of opening the model is a problem where tensors and config are not of one model, and a warning
// where the config by itself cannot be understood: transformers may have a default for what is missing there.
// Weights that the config declares quantised in a way that is not decoded have a check of their own.
// An error of the disk at this moment is thrown: nothing is known of the config.
void judge_config(const Store& store, const Error& e, VerifyReport& report) {
  if (e.is_of_the_moment()) throw e;
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
                     std::span<const Code> accept, int threads, VerifyReport& report) {
  if (is_model_folder(store) || !has_own_names(store)) refuse_model_dict(model_dict, store.root());
  if (store.driver().ranks_apart || !is_sound(store)) return;
  if (real_path_of(assets) == real_path_of(store.root()) && check_model_folder(store, threads, report))
    return;
  Check check{
      .name = "model", .status = Check::Status::kPass, .count = store.tensor_count(), .unit = "tensors"};
  std::vector<Finding> odd;
  try {
    if (is_adapter_alone(store)) {
      check = not_compared("the checkpoint has an adapter, and not the model that it changes");
    } else {
      const Judged found = compare_with_assets(store, assets, model_dict, accept, threads, odd);
      const std::string note = found.compared ? compare_settings(store, assets, odd) : "";
      check = check_of(store, found, odd);
      if (found.compared) check.note = note;
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

void check_own_names(const Store& store, int threads, std::vector<Finding> odd, VerifyReport& report) {
  const Opened opened = open_own(open_store(store.root(), store.opening()),
                                 {.source = store.root(), .keep_unlike_heads = true, .threads = threads});
  if (!opened.own->unlike.empty()) odd = {};  // the same tensors under the model's names
  const Judged found = judged(opened, odd);
  if (found.compared) {
    add_wrapped_names(store, *opened.own, odd);
    add_refused_settings(opened.own->folder.path, store.opening(), odd);
  }
  Check check = check_of(store, found, odd);
  report.add(std::move(check), std::move(odd));
}

bool check_model_folder(const Store& store, int threads, VerifyReport& report) {
  if (!is_model_folder(store)) return false;
  try {
    const ModelFolder folder = find_model_folder(store, store.root(), store.root());
    if (has_other_class(store, folder)) {
      check_class(store, folder, report);
      return true;
    }
    const HfModel model =
        open_hf_model(store.root(), {.files = store.opening(), .leave_unlike_copies = true});
    std::vector<Finding> odd;
    add_unlike(unlike_copies(model, threads), "", odd);
    if (std::string warning = map_warning(model); !warning.empty())
      odd.push_back({.code = Code::kContradiction, .message = std::move(warning), .warning = true});
    for (const std::string& doubt : model.config.doubts)
      odd.push_back({.code = Code::kBadConfig, .message = doubt, .warning = true});
    add_refused_settings(store.root(), store.opening(), odd);
    const Check::Status status = status_of(odd);
    report.add({.name = "model",
                .status = status,
                .count = store.tensor_count(),
                .unit = "tensors",
                .note = model.fronted.empty() ? "" : fronted_text({{"the files", model.fronted}})},
               std::move(odd));
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    judge_config(store, e, report);
  }
  return true;
}

}  // namespace mckpt::impl
