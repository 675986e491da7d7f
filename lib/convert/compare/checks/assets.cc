// Reads the JSON files among the assets, and compares the assets of two sides byte by byte, in blocks of 1
// MiB.
#include "convert/compare/checks/assets.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "convert/source/source_model.h"
#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "hf/assets.h"
#include "hf/config_dtype.h"
#include "hf/quantized/config.h"
#include "io/dcp/dcp.h"
#include "io/file/archive.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlockBytes = 1 << 20, kMostBytes = i64{1} << 30;
constexpr std::string_view kConfig = "config.json";

// The folder of assets: hf_assets in a checkpoint, or the folder of a model. "": there is none.
std::string assets_of(const Store& store) {
  if (dcp_dialect(store)) return own_assets(store);
  bool folder = is_folder(store.root(), store.opening());
  return folder && Folder(store.root(), store.opening()).has_file(std::string(kConfig)) ? store.root() : "";
}

bool is_safetensors_folder(const Store& store) { return store.format() == Format::kSafetensorsFolder; }

std::string text_of(const Folder& folder, const std::string& name) {
  return json_text(folder.open_file(name), kMostBytes);
}

// Other JSON files may be lists: mckpt copies them and uses nothing of them.
bool must_be_object(std::string_view name) { return name == kConfig || name == "generation_config.json"; }

// Throws what is wrong with the file.
void read_asset(const Folder& folder, const std::string& name) {
  std::string text = text_of(folder, name);
  if (name == kTensorTableName) return static_cast<void>(parse_tensor_table(text));
  bool object = parse_json(text, JsonNumbers::kPython).is(JsonType::kObject);
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

// The first byte at which two files differ, or -1.
i64 difference_of(const InputFile& a, const InputFile& b) {
  i64 size = std::min(a.size(), b.size());
  std::vector<u8> left, right;
  for (i64 at = 0; at < size; at += kBlockBytes) {
    std::size_t n = static_cast<std::size_t>(std::min(kBlockBytes, size - at));
    left.resize(n), right.resize(n);
    a.read(at, left), b.read(at, right);
    auto differs = std::ranges::mismatch(left, right).in1;
    if (differs != left.end()) return at + (differs - left.begin());
  }
  return a.size() == b.size() ? -1 : size;
}

// Whether the files are equal but for the entry that declares quantised weights: a result whose tensors are
// not quantised has a config without it.
bool differs_in_quantization(const std::string& name, const Folder& a, const Folder& b) {
  if (name != kConfig) return false;
  try {
    std::string left = text_of(a, name), right = text_of(b, name);
    parse_json(left, JsonNumbers::kPython), parse_json(right, JsonNumbers::kPython);
    return without_quantization(left) == without_quantization(right);
  } catch (const Error&) {
    return false;
  }
}

// The config of a side: with what an adapter in it changes.
std::string config_of(const Folder& folder, const Store& store) {
  const std::string text = text_of(folder, std::string(kConfig));
  const AdaptedStore* view = adapted_view(store);
  return view ? amended(text, view->amended()) : text;
}

bool differs_by_adapter(const std::string& name, const Folder& a, const Store& of_a, const Folder& b,
                        const Store& of_b) {
  if (name != kConfig || (!adapted_view(of_a) && !adapted_view(of_b))) return false;
  return config_of(a, of_a) == config_of(b, of_b);
}

// The type that most items of the tensors have.
std::optional<DType> type_of_most(const Store& store) {
  std::map<DType, i64> items;
  for (i64 t = 0; t < store.tensor_count(); t++) items[store.dtype(t)] += store.shape(t).items();
  if (items.empty()) return std::nullopt;
  return std::ranges::max_element(items, {}, [](const auto& i) { return i.second; })->first;
}

// Whether the files are equal but for the type of the weights, and that of the Hugging Face folder is the type
// of its tensors: a cast that was asked for changes the config, too.
bool differs_in_dtype(const std::string& name, const Folder& a, const Store& of_a, const Folder& b,
                      const Store& of_b) {
  if (name != kConfig) return false;
  try {
    const std::string left = config_of(a, of_a), right = config_of(b, of_b);
    if (with_config_dtype(left, "") != with_config_dtype(right, "")) return false;
    const Store& folder = is_safetensors_folder(of_a) ? of_a : of_b;
    const std::optional<DType> most = type_of_most(folder);
    const std::string& own = &folder == &of_a ? left : right;
    return most && with_config_dtype(own, dtype_name(*most)) == own;
  } catch (const Error&) {
    return false;
  }
}

Check::Status status_of(const std::vector<Finding>& found) {
  if (found.empty()) return Check::Status::kPass;
  bool odd = std::ranges::all_of(found, &Finding::warning);
  return odd ? Check::Status::kWarn : Check::Status::kFail;
}

// The name of an asset relative to the root of the store.
std::string path_in_store(const Store& store, const std::string& folder, const std::string& name) {
  return folder == store.root() ? name : cat(kAssetsFolder, "/", name);
}

// Files and folders that only one of the two folders has.
std::vector<std::string> on_one_side(const Folder& a, const Folder& b) {
  std::vector<std::string> alone;
  for (const auto& [one, other] : {std::pair(&b, &a), {&a, &b}})
    for (const std::string& name : hf_assets(*one))
      if (!other->has_file(name)) alone.push_back(name);
  for (const auto& [one, other] : {std::pair(&b, &a), {&a, &b}}) {
    std::vector<std::string> others = folders_without_assets(*other);
    for (const std::string& name : folders_without_assets(*one))
      if (std::ranges::count(others, name) == 0) alone.push_back(name);
  }
  return alone;
}

}  // namespace

NameSet<std::string> check_assets(const Store& store, VerifyReport& report) {
  std::string path = assets_of(store);
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

bool compare_assets(const Store& tested, const Store& source, const std::optional<std::string>& assets,
                    VerifyReport& report) {
  // Between two models nothing is converted: their weights may be equal where other files are not.
  const bool converted = dcp_dialect(tested) || dcp_dialect(source);
  std::string mine = assets_of(tested);
  std::string theirs = dcp_dialect(source) && assets ? *assets : assets_of(source);
  // Of two folders of models, one that lost its config.json still has its other assets.
  if (is_safetensors_folder(tested) && is_safetensors_folder(source) && mine.empty() != theirs.empty())
    mine = tested.root(), theirs = source.root();
  if (mine.empty() || theirs.empty()) return true;
  Folder here(mine, tested.opening()), other(theirs, source.opening());
  std::vector<Finding> found;
  i64 count = 0;
  for (const std::string& name : hf_assets(here)) {
    if (!other.has_file(name)) continue;
    count++;
    i64 at = difference_of(here.open_file(name), other.open_file(name));
    if (at < 0 || differs_in_quantization(name, here, other) ||
        differs_in_dtype(name, here, tested, other, source) ||
        differs_by_adapter(name, here, tested, other, source))
      continue;
    found.push_back({.code = Code::kUnequal,
                     .file = path_in_store(tested, mine, name),
                     .message = "the file differs from the file of this name on the other side",
                     .offset = at,
                     .warning = !converted});
  }
  for (const auto& [one, other_side] : {std::pair(&here, &other), {&other, &here}})
    if (!one->has_file(kConfig) && other_side->has_file(kConfig))
      found.push_back(
          {.code = Code::kUnequal,
           .file = path_in_store(tested, mine, std::string(kConfig)),
           .message = one == &here
                          ? "only the other side has this file, without which no program loads the model"
                          : "the other side does not have this file",
           .warning = true});
  bool equal = !converted || std::ranges::all_of(found, &Finding::warning);
  Check check{"assets", status_of(found), count, "files"};
  if (std::vector<std::string> alone = on_one_side(here, other); !alone.empty())
    check.note = cat("not compared: ", listed(alone), ", which only one side has");
  report.add(std::move(check), std::move(found));
  return equal;
}

}  // namespace mckpt::impl
