// Reads the JSON files among the assets of one side.
#include "convert/compare/checks/assets.h"

#include <algorithm>
#include <utility>

#include "convert/compare/checks/asset_folder.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "hf/folder/assets.h"
#include "io/dcp/dcp.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostBytes = i64{1} << 30;

// Other JSON files may be lists: mckpt copies them and uses nothing of them.
bool must_be_object(std::string_view name) { return name == kConfig || name == "generation_config.json"; }

// Throws what is wrong with the file.
void read_asset(const Folder& folder, const std::string& name) {
  std::string text = asset_text(folder, name);
  if (name == kTensorTableName) return static_cast<void>(parse_tensor_table(text));
  bool object = check_json(text, JsonNumbers::kPython) == JsonType::kObject;
  if (must_be_object(name) && !object) throw Error(Code::kBadJson, "the file is not a JSON object");
}

std::vector<std::string> json_files(const Folder& folder) {
  std::vector<std::string> names;
  for (const std::string& name : hf_assets(folder))
    if (name.ends_with(".json")) names.push_back(name);
  if (std::string table(kTensorTableName); folder.has_file(table)) names.push_back(table);
  return names;
}

// The opener of a store does not need config.json and reports a bad one as a warning. Nothing can be done
// with the model without it, so the warning becomes a problem here. Returns whether there was such a warning.
bool raise_config_findings(VerifyReport& report) {
  bool raised = false;
  for (std::size_t f = 0; f < report.findings.size(); f++) {
    Finding& finding = report.findings[f];
    if (finding.file != kConfig || finding.code != Code::kBadJson) continue;
    finding.warning = false;
    report.checks[report.check_of[f]].status = Check::Status::kFail;
    raised = true;
  }
  return raised;
}

}  // namespace

std::string asset_folder(const Store& store) {
  if (dcp_dialect(store)) return own_assets(store);
  bool folder = is_folder(store.root(), store.opening());
  return folder && Folder(store.root(), store.opening()).has_file(std::string(kConfig)) ? store.root() : "";
}

std::string asset_text(const Folder& folder, const std::string& name) {
  return json_text(folder.open_file(name), kMostBytes);
}

std::string path_in_store(const Store& store, const std::string& folder, const std::string& name) {
  if (folder == store.root()) return name;
  const std::string front = cat(store.root(), "/");
  return folder.starts_with(front) ? cat(folder.substr(front.size()), "/", name) : name;
}

NameSet<std::string> check_assets(const Store& store, VerifyReport& report) {
  std::string path = asset_folder(store);
  if (path.empty()) return {};
  Folder folder(path, store.opening());
  bool raised = raise_config_findings(report);
  std::vector<std::string> names = json_files(folder);
  std::vector<Finding> found;
  NameSet<std::string> judged;
  for (const std::string& name : names) {
    judged.insert(path_in_store(store, path, name));
    if (name == kConfig && raised) continue;
    try {
      read_asset(folder, name);
    } catch (const Error& e) {
      Finding finding = to_finding(e);
      finding.file = path_in_store(store, path, name);
      // A file that cannot be parsed can be copied, so it is a warning; a file that cannot be opened cannot.
      finding.warning = e.code() == Code::kBadJson && !must_be_object(name) && name != kTensorTableName;
      found.push_back(std::move(finding));
    }
  }
  Check::Status status = status_of(found);
  if (!names.empty()) report.add({"assets", status, std::ssize(names), "files"}, std::move(found));
  return judged;
}

}  // namespace mckpt::impl
