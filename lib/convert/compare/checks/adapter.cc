// The config is read here; what it says, and of which tensors, is judged where adapters are.
#include "convert/compare/checks/adapter.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "convert/compare/differences/json_values.h"
#include "core/base/error.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/compared_config.h"
#include "hf/adapter/lone_adapter.h"
#include "hf/adapter/lora/config_entries.h"
#include "hf/folder/assets.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/finding.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store.h"
#include "io/store/tensor_numbers.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostConfigBytes = 16 << 20, kMostDifferences = 256;

// Problems of tensors are in the file of tensors, others in the config.
Finding finding_of(const Error& e, const Store& store) {
  Finding out = to_finding(e);
  out.file = e.tensor().empty() || store.files().empty() ? kAdapterConfig : store.files()[0].path;
  return out;
}

// Whether the store is the folder of an adapter, with a config of PEFT.
bool is_lone_adapter(const Store& store) {
  if (adapted_view(store) || !store.driver().hf_folder || !is_folder(store.root(), store.opening()))
    return false;
  const Folder folder(store.root(), store.opening());
  return is_adapter_folder(folder) && folder.has_file(kAdapterConfig);
}

std::string config_text(const Store& store) {
  return json_text(Folder(store.root(), store.opening()).open_file(kAdapterConfig), kMostConfigBytes);
}

std::string shown(const std::string& value) { return value.empty() ? "nothing" : escaped(value, 200); }

// ".rank_pattern.q_proj" -> "rank_pattern"
std::string_view key_of(std::string_view place) {
  if (place.starts_with('.')) place.remove_prefix(1);
  return place.substr(0, place.find_first_of(".["));
}

// Files beside the adapters, which are not compared.
std::vector<std::string> other_files(const Store& tested, const Store& source) {
  std::set<std::string> names;
  for (const Store* side : {&tested, &source})
    for (std::string& name : hf_assets(Folder(side->root(), side->opening()))) names.insert(std::move(name));
  std::erase_if(names,
                [](const std::string& name) { return name == kAdapterConfig || name.ends_with(".md"); });
  return {names.begin(), names.end()};
}

// Where the configs differ; one that cannot be read is found.
std::vector<JsonDifference> config_differences(const Store& tested, const Store& source,
                                               std::vector<Finding>& found) {
  try {
    return json_differences(comparable_config(config_text(tested)), comparable_config(config_text(source)),
                            kMostDifferences)
        .first;
  } catch (const Error& e) {
    if (e.code() != Code::kBadJson) throw;
    found.push_back(to_finding(e));
    found.back().file = kAdapterConfig;
    return {};
  }
}

}  // namespace

bool compare_adapters(const Store& tested, const Store& source, bool every, VerifyReport& report) {
  if (!is_lone_adapter(tested) || !is_lone_adapter(source)) return true;
  // Beside a config.json it is one of the files that were compared.
  if (std::ranges::any_of(report.findings, [](const Finding& f) { return f.file == kAdapterConfig; }))
    return true;
  Check check{.name = "assets", .status = Check::Status::kPass, .count = 1, .unit = "files"};
  std::vector<Finding> found;
  for (const JsonDifference& d : config_differences(tested, source, found)) {
    found.push_back({.code = Code::kUnequal,
                     .file = kAdapterConfig,
                     .message = cat("the file differs at ", escaped(d.at), ": expected ", shown(d.b),
                                    ", found ", shown(d.a)),
                     .warning = !every && is_without_effect(key_of(d.at))});
    if (every)
      report.differences.push_back(
          {.tensor = kAdapterConfig, .file = kAdapterConfig, .at = d.at, .expected = d.b, .found = d.a});
  }
  const bool equal = std::ranges::all_of(found, &Finding::warning);
  check.status = status_of(found);
  if (const std::vector<std::string> names = other_files(tested, source); !names.empty())
    check.note = cat("not compared: ", listed(names));
  report.add(std::move(check), std::move(found));
  return equal;
}

void check_merged_adapter(const Store& store, int threads, const std::function<void(i64 bytes)>& step,
                          VerifyReport& report) {
  const AdaptedStore* view = adapted_view(store);
  if (!view) return;
  TensorNumbers numbers(store);
  for (Finding& f : report.findings)
    if (const i64 t = f.tensor.empty() ? -1 : numbers.find(f.tensor); t >= 0 && view->adapted(t))
      f.file.clear();
  VerifyReport own = verify_store(view->adapter(), threads, step);
  Check check{.name = "adapter",
              .status = Check::Status::kPass,
              .count = view->adapter().tensor_count(),
              .unit = "tensors"};
  for (Finding& f : own.findings) f.file = cat(view->folder(), f.file.empty() ? "" : "/", f.file);
  if (!view->untouched().empty())
    own.findings.push_back({.code = Code::kUnaccounted,
                            .file = cat(view->folder(), "/", kAdapterConfig),
                            .message = view->untouched(),
                            .warning = true});
  check.status = status_of(own.findings);
  for (const Check& c : own.checks) check.status = std::max(check.status, c.status);
  report.add(std::move(check), std::move(own.findings));
}

void warn_of_bases(const Store& tested, const Store& source, VerifyReport& report) {
  std::vector<Finding> found;
  for (const Store* side : {&tested, &source}) {
    if (!adapted_view(*side)) continue;
    for (const Finding& f : side->findings())
      if (f.warning && f.code == Code::kContradiction) found.push_back(f);
  }
  if (found.empty()) return;
  const i64 count = std::ssize(found);
  report.add({"adapter", Check::Status::kWarn, count, "adapters"}, std::move(found));
}

void check_adapter(const Store& store, NameSet<std::string>& judged, VerifyReport& report) {
  if (!is_lone_adapter(store)) return;
  judged.insert(kAdapterConfig);
  Check check{
      .name = "adapter", .status = Check::Status::kPass, .count = store.tensor_count(), .unit = "tensors"};
  std::vector<Finding> found;
  try {
    const LoneAdapter result = check_lone_adapter(store, config_text(store));
    for (const Error& e : result.problems) found.push_back(finding_of(e, store));
    if (!result.not_checked.empty()) {
      check.note = cat("not compared with ", kAdapterConfig, ": ", result.not_checked);
      check.status = Check::Status::kNone;
    }
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    found.push_back(finding_of(e, store));
  }
  if (!found.empty()) check.status = Check::Status::kFail;
  report.add(std::move(check), std::move(found));
}

}  // namespace mckpt::impl
