// Compares the assets of two sides byte by byte, in blocks of 1 MiB; JSON files that differ in bytes, by
// value.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "convert/compare/checks/asset_folder.h"
#include "convert/compare/checks/assets.h"
#include "convert/compare/checks/compared_index.h"
#include "convert/compare/checks/one_sided.h"
#include "convert/compare/differences/json_values.h"
#include "convert/compare/differences/one_side.h"
#include "convert/open/own_model.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/config/dtype.h"
#include "hf/folder/assets.h"
#include "hf/folder/known_assets.h"
#include "hf/folder/model_folder.h"
#include "hf/quantized/config.h"
#include "io/dcp/dcp.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/finding.h"
#include "io/store/names/hf_weights.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlockBytes = 1 << 20;
// The file that verl saves beside the files of its ranks, with the number of ranks, which is the grid of a
// run.
constexpr std::string_view kFsdpConfig = "fsdp_config.json", kGridOfFsdp = ".world_size";

bool is_safetensors_folder(const Store& store) { return store.driver().hf_folder; }

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
    std::string text = asset_text(folder, name);
    return is_adapted() && name == kConfig ? amended(text, adapted_view(store)->amended()) : text;
  }
};

constexpr i64 kMostOfOneFile = 32, kMostCompared = i64{64} << 20;

// Where two JSON files differ by value. Nothing for files that are not compared so: other files, large ones,
// and files without JSON.
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
      left = without_weights_entry(without_quantization(left)),
      right = without_weights_entry(without_quantization(right));
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

// Whether the config of the Hugging Face folder says the type of its tensors: a cast that was asked for
// changes the config, too.
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
  // `listed`: every difference is listed in the report, also that a config declares quantised weights or
  // names the file of the weights, which conversions leave out.
  // `types`: the type that a config gives the weights is compared.
  FileComparison(const AssetSide& here, const AssetSide& other, bool listed, bool types, bool warning,
                 VerifyReport& report)
      : here_(here), other_(other), listed_(listed), types_(types), warning_(warning), report_(report) {}

  // `path`: the name in the tested side.
  void compare(const std::string& name, const std::string& path) {
    const i64 at = difference_of(here_.folder.open_file(name), other_.folder.open_file(name));
    if (at < 0 && !(name == kConfig && (here_.is_adapted() || other_.is_adapted()))) return;
    tell(name, path, at, differences_of_json(name, here_, other_, listed_, types_));
  }
  void compare_index(const std::string& name, const std::string& path) {
    const i64 at = difference_of(here_.folder.open_file(name), other_.folder.open_file(name));
    if (at < 0) return;
    std::optional<IndexDifferences> index = differences_of_indexes(
        name, {here_.folder, here_.store}, {other_.folder, other_.store}, kMostOfOneFile, !listed_);
    if (!index) return tell(name, path, at, std::nullopt);
    tell(name, path, at, index->values);
    for (const auto& [entries, in_first] : {std::pair(&index->only_a, true), {&index->only_b, false}})
      if (!entries->empty())
        alone_.push_back({cat(listed(*entries, 3), " in the metadata of ", name), in_first});
  }
  // Entries of an index that one side alone has, and that were not compared.
  const std::vector<OneSided>& alone() const { return alone_; }
  std::vector<Finding> take() { return std::move(found_); }
  bool of_grid() const { return of_grid_; }  // whether something was left out that describes a grid

 private:
  // `at`: the first byte that differs. `json`: null for files that are not compared by value.
  void tell(const std::string& name, const std::string& path, i64 at,
            const std::optional<JsonDifferences>& json) {
    if (!json)
      return add({.file = path,
                  .message = cat("the file differs from that in ", escaped(other_.folder.path(), 4096)),
                  .offset = at});
    for (const JsonDifference& d : json->first) {
      if (name == kFsdpConfig && d.at == kGridOfFsdp) {
        of_grid_ = true;
        continue;
      }
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
  void add(Finding finding) {
    finding.code = Code::kUnequal, finding.warning = warning_;
    found_.push_back(std::move(finding));
  }

  const AssetSide &here_, &other_;
  bool listed_, types_, warning_;
  VerifyReport& report_;
  std::vector<Finding> found_;
  std::vector<OneSided> alone_;
  bool of_grid_ = false;
};

// The folder whose assets a conversion of the side would take.
AssetFolder compared_folder(const Store& store) {
  AssetFolder out{.path = asset_folder(store)};
  if (!out.path.empty() || is_safetensors_folder(store) || !is_folder(store.root(), store.opening()) ||
      !has_own_names(store))
    return out;
  return {model_folder_beside(store, store.root()).path, true};
}

// The files of a training run beside the assets: what its export reads, and what describes how it was
// sharded.
std::vector<std::string> files_of_run(const Store& store) {
  std::vector<std::string> out;
  if (is_safetensors_folder(store) || !is_folder(store.root(), store.opening())) return out;
  if (is_adapter_folder(store.root(), store.opening())) return out;  // compare_adapters() has its config
  const Folder folder(store.root(), store.opening());
  for (const char* name : kConfigsBeside)
    if (folder.has_file(name)) out.emplace_back(name);
  if (folder.has_file(kFsdpConfig)) out.emplace_back(kFsdpConfig);
  return out;
}

bool is_of_adapter(const std::string& name) {
  return std::ranges::find(kConfigsBeside, std::string_view(name)) != std::end(kConfigsBeside);
}

// The files of two sides that are compared, and the files that are not.
struct ComparedFiles {
  i64 count = 0;
  std::vector<Finding> found{};
  std::vector<OneSided> alone{};       // and not compared
  std::vector<std::string> folders{};  // of both sides, and not compared
  bool of_grid = false;
};

// Whether one side has an adapter around its model and the other the model with an adapter in it: the first
// is compared as merged, with the numbers of its adapter.
bool is_merged_with(const Store& wrapped, const Store& model) {
  return is_wrapped_model(wrapped) && !is_adapter_alone(wrapped) && !is_wrapped_model(model);
}

// The files of two runs. The multiplier of an adapter is a part of the model: a side without it is another
// model.
void compare_files_of_runs(const Store& tested, const Store& source, bool every, VerifyReport& report,
                           ComparedFiles& out) {
  const std::vector<std::string> mine = files_of_run(tested), theirs = files_of_run(source);
  if (mine.empty() && theirs.empty()) return;
  if (is_safetensors_folder(tested) || is_safetensors_folder(source)) return;  // which has none of a run
  const bool folders =
      is_folder(tested.root(), tested.opening()) && is_folder(source.root(), source.opening());
  if (folders) {
    const Folder here(tested.root(), tested.opening()), there(source.root(), source.opening());
    const AssetSide one{here, tested}, two{there, source};
    FileComparison files(one, two, every, true, false, report);
    for (const std::string& name : mine) {
      if (std::ranges::find(theirs, name) == theirs.end()) continue;
      out.count++;
      files.compare(name, name);
    }
    for (Finding& f : files.take()) out.found.push_back(std::move(f));
    out.of_grid |= files.of_grid();
  }
  const bool adapter_here = std::ranges::any_of(mine, is_of_adapter),
             adapter_there = std::ranges::any_of(theirs, is_of_adapter);
  for (const auto& [names, others, only_here] : {std::tuple(&mine, &theirs, true), {&theirs, &mine, false}})
    for (const std::string& name : *names) {
      if (std::ranges::find(*others, name) != others->end()) continue;
      const Store &has = only_here ? tested : source, &lacks = only_here ? source : tested;
      if (folders && is_of_adapter(name) && adapter_here != adapter_there && !is_merged_with(has, lacks))
        out.found.push_back({.code = Code::kUnequal,
                             .file = name,
                             .message = cat(only_in(has, "file"), ", with the numbers of its adapter")});
      else
        out.alone.push_back({name, only_here});
    }
}

// A side, and the folder with its assets.
struct FolderOf {
  const Store& store;
  AssetFolder& folder;

  bool is_of_run() const { return dcp_dialect(store) || folder.of_a_run; }
};

// The folder that the caller names stands in for the source's own: the result is compared with the assets
// that were given to its conversion. Where the source has assets and the tested side has none, it is that
// side's; and in a list of differences no side has it in place of its own.
void take_given_folder(const std::string& given, const FolderOf& tested, const FolderOf& source, bool every) {
  const bool none_there = source.folder.path.empty();
  if (tested.is_of_run() && tested.folder.path.empty() && !none_there)
    tested.folder = {.path = given, .given = true};
  else if (source.is_of_run() && (none_there || !every))
    source.folder = {.path = given, .given = true};
}

}  // namespace

bool compare_assets(const Store& tested, const Store& source, const std::optional<std::string>& assets,
                    bool every, VerifyReport& report) {
  AssetFolder mine = compared_folder(tested), theirs = compared_folder(source);
  // Between two models nothing is converted: their weights may be equal where other files are not.
  const bool converted = dcp_dialect(tested) || dcp_dialect(source) || mine.of_a_run || theirs.of_a_run;
  if (assets) take_given_folder(*assets, {tested, mine}, {source, theirs}, every);
  // If one of two model folders lost its config.json, it still has its other assets.
  if (is_safetensors_folder(tested) && is_safetensors_folder(source) &&
      mine.path.empty() != theirs.path.empty())
    mine.path = tested.root(), theirs.path = source.root();
  ComparedFiles out;
  compare_files_of_runs(tested, source, every, report, out);
  if (!mine.path.empty() && !theirs.path.empty()) {
    const Folder here(mine.path, tested.opening()), other(theirs.path, source.opening());
    const AssetSide one{here, tested}, two{other, source};
    FileComparison files(one, two, every, every || !says_own_type(one, two), !converted, report);
    for (const std::string& name : assets_in(here, mine)) {
      if (!other.has_file(name)) continue;
      out.count++;
      files.compare(name, path_in_store(tested, mine.path, name));
    }
    const bool models =
        mine.path == tested.root() && theirs.path == source.root() && !mine.of_a_run && !theirs.of_a_run;
    if (models) {
      for (const std::string& name : other_weights(here))
        if (other.has_file(name)) out.count++, files.compare(name, name);
      // Not counted as copied: whoever writes shards writes their index anew.
      for (const std::string& name : weight_indexes(here))
        if (other.has_file(name)) files.compare_index(name, name);
      out.alone.insert(out.alone.end(), files.alone().begin(), files.alone().end());
    }
    for (Finding& f : files.take()) out.found.push_back(std::move(f));
    for (const auto& [folder, opposite] : {std::pair(&here, &other), {&other, &here}})
      if (!folder->has_file(kConfig) && opposite->has_file(kConfig))
        out.found.push_back({.code = Code::kUnequal,
                             .file = path_in_store(tested, mine.path, std::string(kConfig)),
                             .message = folder == &here
                                            ? cat("only ", folder_path(theirs, source),
                                                  " has this file, without which no program loads the model")
                                            : cat("only ", folder_path(mine, tested), " has this file"),
                             .warning = true});
    out.folders = folders_of_both(here, mine, other, theirs);
    for (OneSided& file : on_one_side(here, mine, other, theirs, models)) {
      // A list of differences has all of them; a conversion makes a folder without what its source lacks.
      if (!every || !file.compared)
        out.alone.push_back(std::move(file));
      else if (file.name != kConfig)
        out.found.push_back(
            {.code = Code::kUnequal,
             .file = file.in_first ? path_in_store(tested, mine.path, file.name)
                                   : path_in_store(source, theirs.path, file.name),
             .message = cat("only ", file.in_first ? folder_path(mine, tested) : folder_path(theirs, source),
                            " has this file"),
             .warning = true});
    }
  } else if (const AssetFolder& own = mine.path.empty() ? theirs : mine; own.of_a_run && !own.path.empty()) {
    out.alone.push_back({std::string(kConfig), &own == &mine});
  }
  bool equal = std::ranges::all_of(out.found, &Finding::warning);
  Check check{"assets", status_of(out.found), out.count, "files"};
  if (!out.alone.empty()) check.note = cat("not compared: ", alone_text(tested, source, out.alone));
  if (!out.folders.empty())
    check.note += cat(check.note.empty() ? "not compared: " : "; ", listed(out.folders), ", which both have");
  if (out.of_grid)
    check.note += cat(check.note.empty() ? "not compared: " : "; ", kGridOfFsdp.substr(1), " of ",
                      kFsdpConfig, ", which describes the grid of a training run");
  const bool nothing = out.count == 0 && out.found.empty() && check.note.empty();
  if (!nothing || (!mine.path.empty() && !theirs.path.empty()))
    report.add(std::move(check), std::move(out.found));
  return equal;
}

}  // namespace mckpt::impl
