// Walks through the folder of a checkpoint and lists what its store does not read. Folders on the way to the
// store's own files are entered; other folders are one entry if they are checkpoints, and are entered if not.
// The bounds of the walk, since a folder may be anything, a home folder or a loop of links:
//
//   a folder is entered once, by its real path; at most 8 folders deep; at most 10,000 entries and folders
//
// A folder that is not entered, or not listed, is an entry with the reason. Other iterations of the training
// run are one entry each.
#include "io/store/open/beside.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/folder.h"
#include "io/file/path_stat.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/iteration_names.h"
#include "io/store/names/torch_names.h"
#include "io/store/names/zero_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr int kMostDepth = 8;
constexpr std::size_t kMostEntries = 10'000;
constexpr std::string_view kCheckpointSuffixes[] = {".safetensors", ".pkl", ".h5", ".hdf5"};

// "._model.safetensors": what macOS notes about model.safetensors on file systems of others.
constexpr std::string_view kFactsOfMac = "._";

bool is_checkpoint_file(std::string_view name) {
  return has_torch_suffix(name) ||
         std::ranges::any_of(kCheckpointSuffixes, [&](std::string_view s) { return name.ends_with(s); });
}

// `path` relative to `root`; "" for the root itself, and for a path that is not in it.
std::string relative(std::string_view path, std::string_view root) {
  if (!path.starts_with(root)) return "";
  path.remove_prefix(root.size());
  while (path.starts_with('/')) path.remove_prefix(1);
  return std::string(path);
}

// One walk.
class BesideList {
 public:
  BesideList(const std::string& path, const Store* store, const OpenOptions& opening)
      : folder_(path, opening) {
    visited_.insert(real_path_of(folder_.path()));
    if (store == nullptr) return;
    is_zero_ = store->driver().zero;
    chosen_ = relative(store->root(), folder_.path());
    bool one_file = !is_folder(store->root(), opening);
    if (one_file) own_.insert(chosen_);
    for (const StoreFile& f : store->files())
      if (!one_file) add_own(joined(chosen_, f.path));
    for (const auto& [name, value] : store->facts()) {
      if (name == "index") own_.insert(joined(chosen_, value));
      has_rank_tables_ |= name == "metadata";
    }
    for (const std::string& name : own_folders_) visited_.insert(real_path_of(joined(folder_.path(), name)));
  }

  std::vector<Beside> run() {
    walk("", 0);
    return std::move(list_);
  }

 private:
  static std::string joined(const std::string& folder, std::string_view name) {
    return folder.empty() ? std::string(name) : cat(folder, "/", name);
  }

  void add_own(std::string path) {
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      own_folders_.insert(path.substr(0, slash));
    own_.insert(std::move(path));
  }

  void add(std::string path, Beside::Kind kind, std::string reason = "", bool folder = false) {
    if (full_) return;
    if (list_.size() == kMostEntries) return stop(path);
    list_.push_back({std::move(path), kind, std::move(reason), folder});
  }
  void add_folder(std::string path, Beside::Kind kind, std::string reason = "") {
    add(std::move(path), kind, std::move(reason), true);
  }

  void stop(const std::string& path) {
    if (!full_)
      list_.push_back(
          {cat(path, " and the names after it"), Beside::Kind::kUnread, "there are too many files"});
    full_ = true;
  }

  void walk(const std::string& name, int depth) {
    std::vector<FolderEntry> entries;
    try {
      if (depth == kMostDepth) throw Error(Code::kBadPath, "folders are nested too deep");
      entries = folder_.entries(name);
    } catch (const Error& e) {
      return add_folder(name.empty() ? "." : name, Beside::Kind::kUnread, e.message());
    }
    // A folder that a link here leads to as well is named by its own name.
    auto is_linked = [&](const FolderEntry& e) {
      return e.folder && is_link(joined(folder_.path(), joined(name, e.name)));
    };
    std::stable_partition(entries.begin(), entries.end(), std::not_fn(is_linked));
    for (const FolderEntry& e : entries) {
      if (full_) return;
      std::string path = joined(name, e.name);
      if (e.name.starts_with('.')) {
        hidden(path, e);
        continue;
      }
      e.folder ? sub_folder(path, e.name, depth) : file(path, e.name);
    }
  }

  // Hidden files and folders belong to tools, but a hidden name hides no file that a program could load.
  void hidden(const std::string& path, const FolderEntry& e) {
    const auto is_loadable = [](const FolderEntry& f) {
      return !f.folder && !f.name.starts_with(kFactsOfMac) && is_checkpoint_file(f.name);
    };
    if (!e.folder && is_loadable(e)) add(path, Beside::Kind::kUnread, "a hidden file");
    if (!e.folder) return;
    try {
      if (std::ranges::any_of(folder_.entries(path), is_loadable))
        add_folder(path, Beside::Kind::kUnread, "a hidden folder");
    } catch (const Error& error) {
      // Others are folders of tools that nobody else may list.
      if (error.is_of_the_moment()) add_folder(path, Beside::Kind::kUnread, error.message());
    }
  }

  void sub_folder(const std::string& path, const std::string& name, int depth) {
    bool leads_to_chosen = path == chosen_ || chosen_.starts_with(cat(path, "/"));
    if (leads_to_chosen || own_folders_.contains(path)) {
      visited_.insert(real_path_of(joined(folder_.path(), path)));
      return walk(path, depth + 1);
    }
    // The iterations of a training run are checkpoints of their own; the one that was opened is one of them.
    if (is_iteration_folder(name) && is_iteration_folder(chosen_))
      return add_folder(path, Beside::Kind::kOther, "another iteration");
    if (visited_.size() >= kMostEntries) return stop(path);
    // A link may lead to a folder a second time, also to one that the walk is in.
    if (!visited_.insert(real_path_of(joined(folder_.path(), path))).second) return;
    if (chosen_.starts_with("snapshots/"))
      return;  // of a hub cache: other revisions, and the cache's own files
    try {
      if (is_checkpoint_folder(folder_, path)) return add_folder(path, Beside::Kind::kCheckpoint);
    } catch (const Error& e) {
      return add_folder(path, Beside::Kind::kUnread, e.message());
    }
    walk(path, depth + 1);
  }

  void file(const std::string& path, const std::string& name) {
    if (own_.contains(path) || name == kTrackerName || (path == kZeroLatestName && !chosen_.empty())) return;
    if (is_zero_ && is_zero_script(name)) return;
    if (has_rank_tables_ && path == joined(chosen_, name) && rank_of_dcp_metadata(name) >= 0) return;
    const Beside::Kind unread = is_checkpoint_file(name) ? Beside::Kind::kUnread : Beside::Kind::kOther;
    try {
      if (!folder_.file_bytes(path)) return add(path, unread, "a broken link");
    } catch (const Error& e) {
      return add(path, unread, e.message());
    }
    add(path, is_checkpoint_file(name)  ? Beside::Kind::kCheckpoint
              : name.ends_with(".json") ? Beside::Kind::kJson
                                        : Beside::Kind::kOther);
  }

  Folder folder_;
  std::string chosen_;                      // the store's root inside the folder; "": the folder itself
  NameSet<std::string> own_, own_folders_;  // the files that the store reads, and the folders they are in
  std::set<std::string> visited_;           // real paths of folders
  std::vector<Beside> list_;
  bool has_rank_tables_ = false;  // the store read "__0.metadata", "__1.metadata" ... in place of .metadata
  bool is_zero_ = false;          // the store is of DeepSpeed
  bool full_ = false;
};

}  // namespace

std::string real_path_of(const std::string& path) {
  std::error_code failed;
  std::filesystem::path real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

std::vector<Beside> list_beside(const std::string& path, const Store* store, const OpenOptions& opening) {
  if (!is_folder(path, opening)) return {};
  return BesideList(path, store, opening).run();
}

std::vector<std::string> checkpoints_beside(const std::string& path, const Store& store) {
  std::vector<std::string> out;
  for (Beside& b : list_beside(path, &store, store.opening()))
    if (b.kind == Beside::Kind::kCheckpoint) out.push_back(std::move(b.path));
  return out;
}

}  // namespace mckpt::impl
