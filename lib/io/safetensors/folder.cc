// A folder of safetensors files as one Store: with an index, a single file, a set without its index, or the
// shards that torch DCP's Hugging Face writer leaves. A fault in one file does not hide the others: it
// becomes a finding.
//
//   model.safetensors.index.json   "w" -> model-00001-of-00002.safetensors
//   model-00001-of-00002.safetensors  has "w", "x"    "x": the index does not name it: a stray, and a finding
//   model-00002-of-00002.safetensors  missing         a finding; tensors of the other file are listed
//   model.safetensors                 not named       another model (io/safetensors/two_models.h)
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/folder.h"
#include "io/file/unfinished_download.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/safetensors/config_facts.h"
#include "io/safetensors/index.h"
#include "io/safetensors/safetensors.h"
#include "io/safetensors/shards.h"
#include "io/safetensors/two_models.h"
#include "io/store/findings.h"
#include "io/store/open/format_ids.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
// Missing files of one set: the most that become findings, and the most that are looked for one by one.
constexpr std::size_t kMostListed = 50;
constexpr i64 kMostLookedFor = 1000;

// The number at the front of the text, if it has five digits.
std::optional<i64> five_digits(std::string_view text) {
  i64 number = 0;
  for (char c : text.substr(0, 5)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

class FolderOpener {
 public:
  FolderOpener(const std::string& path, const OpenOptions& opening)
      : folder_(path, opening),
        store_(std::make_unique<SafetensorsStore>(path, Format::kSafetensorsFolder, opening)) {
    for (const FolderEntry& e : folder_.entries()) {
      if (e.folder) continue;
      if (e.name.ends_with(kSuffix)) weights_.push_back(e.name);
      if (e.name.ends_with(kIndexSuffix)) indexes_.push_back(e.name);
    }
  }

  // The name in config.json decides, then the index, then model.safetensors or the only file; else all are one set.
  std::unique_ptr<Store> open() {
    refuse_beside_torch(folder_, weights_, indexes_);
    add_config_facts(folder_, *store_, [&](Finding f) { odd_.add(std::move(f)); });
    if (const std::string named = chosen_weights(folder_); !named.empty()) {
      store_->add_fact("files", cat(named, " (by ", kWeightsEntry, " of config.json)"));
      named.ends_with(kIndexSuffix) ? open_indexed(named, true) : open_single(named, kNotNamed);
    } else if (!indexes_.empty()) {
      open_indexed(chosen_index());
    } else if (weights_.empty()) {
      throw Error(Code::kUnknownFormat, "the folder has no safetensors file");
    } else if (weights_.size() == 1 || has_weights(kSingleFile)) {
      open_single(weights_.size() == 1 ? weights_[0] : std::string(kSingleFile));
    } else {
      open_set();
    }
    if (!store_->files().empty()) store_->add_metadata_facts(store_->table(0));
    for (Finding& f : odd_.take()) store_->add_finding(std::move(f));
    return std::move(store_);
  }

 private:
  bool has_weights(std::string_view name) const {
    return std::find(weights_.begin(), weights_.end(), name) != weights_.end();
  }

  // Throws kBadIndex if there are several indexes and none has the usual name.
  std::string chosen_index() const {
    const std::string usual = cat("model", kIndexSuffix);
    if (indexes_.size() == 1) return indexes_[0];
    if (std::find(indexes_.begin(), indexes_.end(), usual) != indexes_.end()) return usual;
    throw Error(Code::kBadIndex, "the folder has several indexes, and none is the usual one")
        .expected(usual)
        .found(listed(indexes_))
        .help("put the files of one index into a folder of their own");
  }

  // The number of the file, or nothing if it could not be read: then a finding says why.
  std::optional<i32> load(std::string name) {
    i64 bytes = -1;
    try {
      InputFile file = folder_.open_file(name);
      bytes = file.size();
      SafetensorsTable table = read_safetensors_table(file);
      return store_->add_file(std::move(name), bytes, std::move(table));
    } catch (Error& e) {
      Finding finding = to_finding(e.code() == Code::kNotFound ? missing_shard(name) : e);
      finding.file = name;
      odd_.add(std::move(finding));
      store_->add_lost_file(std::move(name), bytes);
      return std::nullopt;
    }
  }

  Error missing_shard(const std::string& name) const {
    constexpr int kMostLooks = 50;  // an index may name any number of files
    const std::string left = looks_++ < kMostLooks ? unfinished_download(folder_, name) : "";
    return Error(Code::kShardMissing, cat("the shard is missing", left.empty() ? "" : cat(": ", left)))
        .help(left.empty() ? "fetch or copy the file again" : "start the download again");
  }

  void open_indexed(const std::string& index_name, bool named = false);  // by config.json
  void add_listed(const SafetensorsIndex& index);
  void add_strays(const SafetensorsIndex& index);
  void note_lost(const SafetensorsIndex& index, const std::string& index_name);
  void check_total_size(const SafetensorsIndex& index, const std::string& index_name);
  // `others`: what is said of the other files of weights in the folder.
  void open_single(const std::string& name, std::string_view others = kNotReferenced);
  void open_set();
  void add_all_once();
  void check_counts(std::span<const std::string> names);
  void add_absent(std::string_view before, std::string_view after, const std::set<i64>& there, i64 count);
  Finding absent(const std::string& name) const;
  void add_unused(std::string_view why, std::string_view but = "");  // of the files that the store has not
  void mismatch(std::string_view tensor, i32 file, std::string message, bool warning = false);

  Folder folder_;
  mutable int looks_ = 0;  // for what is left of missing files
  Findings odd_;           // a bounded number of each kind
  std::unique_ptr<SafetensorsStore> store_;
  std::vector<std::string> weights_, indexes_;

  struct Stray {
    i32 file;
    i64 row;
  };
  std::vector<Stray> strays_;
  std::vector<bool> found_;  // one an entry of the weight map
  std::vector<bool> lost_;   // one a file of the index: missing, or without a header that can be read
};

void FolderOpener::open_indexed(const std::string& index_name, bool named) {
  SafetensorsIndex index = with_file(cat(folder_.path(), "/", index_name), [&] {
    return parse_safetensors_index(json_text(folder_.open_file(index_name)));
  });
  // The index is of another model than the single file where it does not name that.
  const bool two =
      !named && has_weights(kSingleFile) && std::ranges::find(index.files, kSingleFile) == index.files.end();
  if (two && folder_.opening().model_files == ModelFiles::kSingle) {
    store_->add_fact("files", cat(kSingleFile, " (chosen of two models)"));
    return open_single(std::string(kSingleFile), std::string(kNotChosen));
  }
  store_->add_fact("index", index_name);
  if (index.weight_map.empty())
    odd_.add({.code = Code::kBadIndex, .file = index_name, .message = "the weight_map names no tensor"});
  store_->reserve_files(std::ssize(index.files));
  // A hundred thousand names of files that are not there are kept once: in the store.
  for (std::string& name : index.files) lost_.push_back(!load(std::move(name)));
  add_listed(index);
  add_strays(index);
  note_lost(index, index_name);
  for (Finding& f : index.findings) f.file = index_name, odd_.add(std::move(f));
  check_total_size(index, index_name);
  // A shard that cannot be read is what is wrong, and may be of the model that is meant.
  if (two && std::ranges::find(lost_, true) == lost_.end()) {
    const TwoModelNames names{std::string(kSingleFile),
                              cat("the shards that ", escaped(index_name), " names"),
                              "vLLM and SGLang load the shards"};
    const auto single = [&] { return open_safetensors_file(folder_.inside(kSingleFile), folder_.opening()); };
    odd_.add(judge_two_models(*store_, names, single));
  }
  add_unused(named ? kNotNamed : kNotReferenced, two ? kSingleFile : "");
}

// Adds the tensors that are where the index says, and notes the others as strays.
void FolderOpener::add_listed(const SafetensorsIndex& index) {
  found_.assign(index.weight_map.size(), false);
  if (std::ranges::find(lost_, false) == lost_.end()) return;
  NameMap<std::string_view, std::size_t> entries;
  entries.reserve(index.weight_map.size());
  for (std::size_t i = 0; i < index.weight_map.size(); i++) entries.emplace(index.weight_map[i].tensor, i);
  for (i32 f = 0; f < static_cast<i32>(index.files.size()); f++) {
    const SafetensorsTable& table = store_->table(f);
    for (i64 row = 0; row < table.size(); row++) {
      auto entry = entries.find(table.name(row));
      if (entry == entries.end() || static_cast<i32>(index.weight_map[entry->second].file) != f) {
        strays_.push_back({f, row});
      } else {
        found_[entry->second] = true;
        store_->add_tensor(f, row);
      }
    }
  }
}

void FolderOpener::add_strays(const SafetensorsIndex& index) {
  auto file_name = [&](i32 file) { return escaped(store_->files()[file].path); };
  NameMap<std::string_view, i32> stray_files;  // the file of the first of each name
  for (const Stray& s : strays_) stray_files.emplace(store_->table(s.file).name(s.row), s.file);
  NameMap<std::string_view, i32> homes;  // of the tensors that are added, where a stray has their name
  NameSet<std::string_view> misplaced;
  for (std::size_t i = 0; i < found_.size(); i++) {
    const SafetensorsIndex::Entry& e = index.weight_map[i];
    i32 file = static_cast<i32>(e.file);
    auto stray = stray_files.find(e.tensor);
    if (found_[i]) {
      if (stray != stray_files.end()) homes.emplace(e.tensor, file);
    } else if (!lost_[e.file]) {  // of a lost file, everything is missing
      std::string where = stray == stray_files.end() ? "" : cat("; it is in ", file_name(stray->second));
      mismatch(e.tensor, file, cat("the tensor is not in the shard that the index names", where));
      misplaced.insert(e.tensor);
    }
  }
  for (const Stray& s : strays_) {
    std::string_view name = store_->table(s.file).name(s.row);
    auto [home, added] = homes.emplace(name, s.file);
    if (!added) {
      mismatch(name, s.file,
               cat("the tensor is in two shards (duplicate): also in ", file_name(home->second)));
      continue;
    }
    if (!misplaced.contains(name))
      mismatch(name, s.file, "the index does not name this file for the tensor (not listed)", true);
    store_->add_tensor(s.file, s.row);
  }
}

// Tensors of the index that went with their files: a consequence of a problem, so a warning.
void FolderOpener::note_lost(const SafetensorsIndex& index, const std::string& index_name) {
  i64 count = std::ranges::count_if(index.weight_map, [&](const auto& e) { return lost_[e.file]; });
  if (count == 0) return;
  odd_.add({.code = Code::kIndexMismatch,
            .file = index_name,
            .message = cat(count, " of ", counted(std::ssize(index.weight_map), "tensor"),
                           " are in files that are missing or cannot be read"),
            .warning = true});
}

void FolderOpener::mismatch(std::string_view tensor, i32 file, std::string message, bool warning) {
  odd_.add({.code = Code::kIndexMismatch,
            .tensor = std::string(tensor),
            .file = store_->files()[file].path,
            .message = std::move(message),
            .warning = warning});
}

// Compares total_size with the bytes of all tensors; only where every file could be read.
void FolderOpener::check_total_size(const SafetensorsIndex& index, const std::string& index_name) {
  bool any_lost = std::ranges::find(lost_, true) != lost_.end();  // then there is no sum to compare with
  if (!index.total_size || any_lost) return;
  i64 total = 0;
  for (std::size_t f = 0; f < index.files.size(); f++) {
    const SafetensorsTable& table = store_->table(static_cast<i32>(f));
    for (i64 row = 0; row < table.size(); row++) total += table.bytes(row);
  }
  if (total == *index.total_size) return;
  odd_.add(
      {.code = Code::kBadTotalSize,
       .file = index_name,
       .message = cat("metadata.total_size is ", *index.total_size, ", the shards hold ", total, " bytes"),
       .warning = true});
}

// A folder of one model file. An unreadable one is an error, not a finding: nothing else is there.
void FolderOpener::open_single(const std::string& name, std::string_view others) {
  i32 file = with_file(cat(folder_.path(), "/", name), [&] {
    InputFile input = folder_.open_file(name);
    return store_->add_file(name, input.size(), read_safetensors_table(input));
  });
  const SafetensorsTable& table = store_->table(file);
  if (has_sharding_info(table)) {
    add_dcp_shards(*store_);
  } else {
    for (i64 row = 0; row < table.size(); row++) store_->add_tensor(file, row);
  }
  check_counts({&name, 1});
  add_unused(others);
}

void FolderOpener::open_set() {
  bool sharded = false;
  for (const std::string& name : weights_)
    if (std::optional<i32> file = load(name)) sharded |= has_sharding_info(store_->table(*file));
  check_counts(weights_);
  if (sharded) {
    add_dcp_shards(*store_);
  } else {
    odd_.add({.code = Code::kBadIndex,
              .message = "several safetensors files and no index: all of them are read as one set",
              .warning = true});
    add_all_once();
  }
}

void FolderOpener::add_all_once() {
  NameMap<std::string_view, i32> homes;
  for (i32 f = 0; f < static_cast<i32>(store_->files().size()); f++) {
    for (i64 row = 0; row < store_->table(f).size(); row++) {
      std::string_view name = store_->table(f).name(row);
      auto [home, added] = homes.emplace(name, f);
      if (added) {
        store_->add_tensor(f, row);
      } else {
        mismatch(name, f,
                 cat("the tensor is in two files (duplicate): also in ",
                     escaped(store_->files()[home->second].path)));
      }
    }
  }
}

// Names such as x-00002-of-00003.safetensors say how many files there should be.
void FolderOpener::check_counts(std::span<const std::string> names) {
  std::map<std::pair<std::string_view, std::string_view>, std::set<i64>>
      sets;  // by what is around the number
  for (const std::string& name : names) {
    std::string_view stem = std::string_view(name).substr(0, name.size() - kSuffix.size());
    std::size_t of = stem.rfind("-of-");
    if (of == std::string_view::npos || of < 6 || stem.size() - of - 4 != 5) continue;
    std::optional<i64> number = five_digits(stem.substr(of - 5));
    if (number && five_digits(stem.substr(of + 4)))
      sets[{stem.substr(0, of - 5), stem.substr(of)}].insert(*number);
  }
  for (const auto& [around, there] : sets)
    add_absent(around.first, around.second, there, *five_digits(around.second.substr(4)));
}

// Reports files that are missing from a set: `before` and `after` are what surrounds the number in their
// names.
void FolderOpener::add_absent(std::string_view before, std::string_view after, const std::set<i64>& there,
                              i64 count) {
  auto name = [&](i64 number) { return cat(before, cat(100000 + number).substr(1), after, kSuffix); };
  if (count - std::ssize(there) > kMostLookedFor) {
    odd_.add({.code = Code::kShardMissing,
              .message = cat("shards are missing: ", std::ssize(there), " of ", count, " are there, such as ",
                             escaped(name(*there.begin()))),
              .help = "fetch or copy the files again"});
    return;
  }
  std::vector<Finding> absent_ones;
  for (i64 i = 1; i <= count; i++)
    if (!there.contains(i)) absent_ones.push_back(absent(name(i)));
  const std::size_t listed = std::min(absent_ones.size(), kMostListed);
  if (listed < absent_ones.size()) {
    std::span<const Finding> rest = std::span(absent_ones).subspan(listed);
    odd_.add({.code = Code::kShardMissing,
              .message =
                  cat(std::ssize(rest), " more shards of ", escaped(before), " are missing than are listed"),
              .warning = std::ranges::all_of(rest, &Finding::warning)});
  }
  for (const Finding& f : absent_ones)
    if (!f.warning) store_->add_lost_file(f.file, -1);
  for (std::size_t i = 0; i < listed; i++) odd_.add(std::move(absent_ones[i]));
}

// A rank of torch DCP that has nothing for a file (shard-00003-model-00002-of-00002) writes none. Whether
// it was lost cannot be seen, because a tensor's size is only as far as its pieces reach: a warning.
Finding FolderOpener::absent(const std::string& name) const {
  Finding finding = to_finding(missing_shard(name));
  finding.file = name;
  constexpr std::string_view kRank = "shard-00000";
  if (!name.starts_with(kRank.substr(0, 6)) || name.size() <= kRank.size()) return finding;
  auto of_another_rank = [&](const std::string& other) {
    return other.size() == name.size() && other.ends_with(name.substr(kRank.size()));
  };
  if (!std::ranges::any_of(weights_, of_another_rank)) return finding;
  finding.message =
      cat(finding.message,
          "; the file may never have existed: a rank that has no part of these tensors writes none");
  finding.warning = true;
  return finding;
}

void FolderOpener::add_unused(std::string_view why, std::string_view but) {
  NameSet<std::string_view> unused(weights_.begin(), weights_.end());
  for (const StoreFile& file : store_->files()) unused.erase(file.path);
  for (const std::string& name : weights_)
    if (unused.contains(name) && name != but)
      odd_.add({.code = Code::kUnusedFile,
                .file = name,
                .message = cat("the file ", escaped(name), " is ", why),
                .warning = true});
}

}  // namespace

std::unique_ptr<Store> open_safetensors_folder(const std::string& path, const OpenOptions& opening) {
  return with_file(path, [&] { return FolderOpener(path, opening).open(); });
}

}  // namespace mckpt::impl
