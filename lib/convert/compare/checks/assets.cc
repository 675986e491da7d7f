// Reads the JSON files among the assets, and compares the assets of two sides byte by byte, in blocks of 1
// MiB; JSON files that differ in bytes, by value.
#include "convert/compare/checks/assets.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "convert/compare/differences/json_values.h"
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

// A folder of one side, with the store that it belongs to.
struct AssetSide {
  const Folder& folder;
  const Store& store;

  bool is_adapted() const { return adapted_view(store) != nullptr; }
  // The text of a JSON file; config.json with what an adapter in the side changes.
  std::string text(const std::string& name) const {
    std::string text = text_of(folder, name);
    return is_adapted() && name == kConfig ? amended(text, adapted_view(store)->amended()) : text;
  }
};

constexpr i64 kMostOfOneFile = 32, kMostCompared = i64{64} << 20;

// Where two JSON files differ by value. Nothing for files that are not compared so: other files, large ones, and what
// is no JSON.
std::optional<JsonDifferences> differences_of_json(const std::string& name, const AssetSide& a,
                                                   const AssetSide& b, bool quantization, bool types) {
  if (!name.ends_with(".json") ||
      std::max(a.folder.open_file(name).size(), b.folder.open_file(name).size()) > kMostCompared)
    return std::nullopt;
  try {
    std::string left = a.text(name), right = b.text(name);
    // A config that is not one is judged as it is, and not without its entry.
    JsonValue of_a = parse_json(left, JsonNumbers::kPython), of_b = parse_json(right, JsonNumbers::kPython);
    if (!quantization && name == kConfig)
      left = without_quantization(left), right = without_quantization(right);
    if (!types && name == kConfig) left = with_config_dtype(left, ""), right = with_config_dtype(right, "");
    of_a = parse_json(left, JsonNumbers::kPython), of_b = parse_json(right, JsonNumbers::kPython);
    return json_differences(of_a, of_b, kMostOfOneFile);
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return std::nullopt;
  }
}

// The type that most items of the tensors have.
std::optional<DType> type_of_most(const Store& store) {
  std::map<DType, i64> items;
  for (i64 t = 0; t < store.tensor_count(); t++) items[store.dtype(t)] += store.shape(t).items();
  if (items.empty()) return std::nullopt;
  return std::ranges::max_element(items, {}, [](const auto& i) { return i.second; })->first;
}

// Whether the config of the Hugging Face folder says the type of its tensors: a cast that was asked for changes
// the config, too.
bool says_own_type(const AssetSide& a, const AssetSide& b) {
  try {
    const AssetSide& folder = is_safetensors_folder(a.store) ? a : b;
    const std::optional<DType> most = type_of_most(folder.store);
    const std::string own = folder.text(std::string(kConfig));
    return most && with_config_dtype(own, dtype_name(*most)) == own;
  } catch (const Error&) {
    return false;
  }
}

// Compares one file that both folders have.
class FileComparison {
 public:
  // `listed`: every difference is listed in the report, also that a config declares quantised weights, which a
  // conversion of such weights leaves out.
  // `types`: the type that a config gives the weights is compared.
  FileComparison(const AssetSide& here, const AssetSide& other, bool listed, bool types, bool warning,
                 VerifyReport& report)
      : here_(here), other_(other), listed_(listed), types_(types), warning_(warning), report_(report) {}

  // `path`: the name in the tested side.
  void compare(const std::string& name, const std::string& path) {
    const i64 at = difference_of(here_.folder.open_file(name), other_.folder.open_file(name));
    if (at < 0 && !(name == kConfig && (here_.is_adapted() || other_.is_adapted()))) return;
    const std::optional<JsonDifferences> json = differences_of_json(name, here_, other_, listed_, types_);
    if (!json)
      return add({.file = path,
                  .message = "the file differs from the file of this name on the other side",
                  .offset = at});
    for (const JsonDifference& d : json->first) {
      auto value = [](const std::string& text) {
        return text.empty() ? std::string("nothing") : escaped(text, 200);
      };
      add({.file = path,
           .message = cat("the file differs at ", escaped(d.at), ": expected ", value(d.b), ", found ",
                          value(d.a))});
      if (listed_)
        report_.differences.push_back(
            {.tensor = path, .file = path, .at = d.at, .expected = d.b, .found = d.a});
    }
    if (const i64 more = json->count - std::ssize(json->first); more > 0)
      add({.file = path, .message = cat("the file differs in ", counted(more, "more value"))});
  }
  std::vector<Finding> take() { return std::move(found_); }

 private:
  void add(Finding finding) {
    finding.code = Code::kUnequal, finding.warning = warning_;
    found_.push_back(std::move(finding));
  }

  const AssetSide &here_, &other_;
  bool listed_, types_, warning_;
  VerifyReport& report_;
  std::vector<Finding> found_;
};

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
                    bool every, VerifyReport& report) {
  // Between two models nothing is converted: their weights may be equal where other files are not.
  const bool converted = dcp_dialect(tested) || dcp_dialect(source);
  std::string mine = assets_of(tested);
  std::string theirs = dcp_dialect(source) && assets ? *assets : assets_of(source);
  // Of two folders of models, one that lost its config.json still has its other assets.
  if (is_safetensors_folder(tested) && is_safetensors_folder(source) && mine.empty() != theirs.empty())
    mine = tested.root(), theirs = source.root();
  if (mine.empty() || theirs.empty()) return true;
  Folder here(mine, tested.opening()), other(theirs, source.opening());
  const AssetSide one{here, tested}, two{other, source};
  FileComparison files(one, two, every, every || !says_own_type(one, two), !converted, report);
  i64 count = 0;
  for (const std::string& name : hf_assets(here)) {
    if (!other.has_file(name)) continue;
    count++;
    files.compare(name, path_in_store(tested, mine, name));
  }
  std::vector<Finding> found = files.take();
  for (const auto& [folder, opposite] : {std::pair(&here, &other), {&other, &here}})
    if (!folder->has_file(kConfig) && opposite->has_file(kConfig))
      found.push_back(
          {.code = Code::kUnequal,
           .file = path_in_store(tested, mine, std::string(kConfig)),
           .message = folder == &here
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
