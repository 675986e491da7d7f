// Walks over the files of the store and beside it, and gives each its name in the archive.
#include "convert/plan/targets/archived_files.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/names.h"
#include "hf/folder/assets.h"
#include "hf/folder/model_folder.h"
#include "io/file/place.h"
#include "io/store/missing_file.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kOwnFolders[] = {kAssetsFolder, "huggingface", "additional_chat_templates"};

void check_line(std::string_view name) {
  bool line = name.find_first_of("\n\r") == name.npos;
  for (std::string_view rest = name; line && !rest.empty();) {
    std::size_t n = utf8_sequence(rest);
    line = n > 0;
    rest.remove_prefix(n);
  }
  if (!line) throw Error(Code::kNotHeld, "an archive lists names of files as lines of UTF-8").file(name);
}

// One collection.
class Collection {
 public:
  explicit Collection(const Store& store) : store_(store) {
    for (i32 f = 0; f < std::ssize(store.files()); f++) {
      const std::string& path = store.files()[f].path;
      by_path_.emplace(path, f);
      if (std::size_t slash = path.find('/'); slash != path.npos) own_folders_.insert(path.substr(0, slash));
    }
    for (std::string_view name : kOwnFolders) own_folders_.insert(std::string(name));
  }

  ArchivedFiles run() {
    if (store_.files().size() == 1 && store_.files()[0].path.empty())
      add_lone_file();
    else
      add_folder();
    return std::move(out_);
  }

 private:
  void add_lone_file() {
    out_.folders.push_back(std::make_unique<const Folder>(parent_folder(store_.root()), store_.opening()));
    out_.opened = store_.root().substr(store_.root().rfind('/') + 1);
    out_.files.push_back({out_.opened, store_.files()[0].bytes, 0, 0, out_.opened});
  }

  void add_folder() {
    out_.folders.push_back(std::make_unique<const Folder>(store_.root(), store_.opening()));
    add_entries("");
    for (const auto& [path, file] : by_path_)
      if (!added_.contains(path)) add(path);
  }

  void add_entries(const std::string& below) {
    for (const FolderEntry& e : out_.folders[0]->entries(below)) {
      std::string name = below.empty() ? e.name : cat(below, "/", e.name);
      bool hidden = e.name.starts_with('.') && !e.name.ends_with(".metadata");
      if (hidden && !by_path_.contains(name))
        out_.left_out.push_back(e.folder ? cat(name, "/") : name);
      else if (!e.folder)
        add(name);
      else if (!below.empty() || own_folders_.contains(e.name))
        add_entries(name);
      else
        out_.left_out.push_back(cat(name, "/"));
    }
  }

  void add(const std::string& name) {
    std::optional<i64> bytes;
    try {
      bytes = out_.folders[0]->file_bytes(name);
    } catch (const Error& e) {
      if (e.code() != Code::kNotAFile || by_path_.contains(name)) throw;
      return out_.left_out.push_back(name);  // a pipe, a device
    }
    if (!bytes) throw missing_file_error().file(cat(store_.root(), "/", name));
    auto known = by_path_.find(name);
    added_.insert(name);
    out_.files.push_back({name, *bytes, known == by_path_.end() ? -1 : known->second, 0, name});
  }

  const Store& store_;
  NameMap<std::string, i32> by_path_;
  NameSet<std::string> own_folders_, added_;
  ArchivedFiles out_;
};

// The assets that are not in the folder of the checkpoint.
void add_assets(ArchivedFiles& out, const Store& store, const std::string& source,
                const std::optional<std::string>& assets) {
  ModelFolder model = find_model_folder(store, source, assets);
  const std::string& root = store.root();
  if (model.path.empty() || model.path == root || model.path.starts_with(cat(root, "/"))) return;
  if (!assets && !out.opened.empty()) return;
  SideFiles found = assets ? plan_assets(model.path, "", store.opening()) : model.files(store.opening());
  out.folders.push_back(std::make_unique<const Folder>(model.path, store.opening()));
  for (const SideFile& f : found.copies) {
    std::string name = cat(kAssetsFolder, "/", f.name);
    if (std::ranges::find(out.files, name, &ArchivedFile::name) != out.files.end())
      throw Error(Code::kContradiction, "the checkpoint has assets of its own")
          .file(cat(root, "/", name))
          .help("leave `assets` out");
    out.files.push_back({name, f.bytes, -1, 1, f.name});
  }
}

}  // namespace

std::vector<i64> ArchivedFiles::by_store_file(const Store& store) const {
  std::vector<i64> out(store.files().size(), -1);
  for (i64 f = 0; f < std::ssize(files); f++)
    if (files[f].store_file >= 0) out[files[f].store_file] = f;
  return out;
}

SourceIdentity ArchivedFiles::identity() const {
  SourceIdentity out{.files = cat(opened, "\n")};
  for (const ArchivedFile& f : files) {
    out.files += cat(f.name, " ", f.bytes);
    if (f.store_file < 0) {
      InputFile file = folders[f.folder]->open_file(f.in_folder);
      out.files += cat(" ", file.stamp().modified_ns);
      out.times += cat(f.name, " ", file.stamp().changed_ns, "\n");
    }
    out.files += "\n";
  }
  return out;
}

ArchivedFiles archived_files(const Store& store, const std::string& source,
                             const std::optional<std::string>& assets) {
  ArchivedFiles out = Collection(store).run();
  add_assets(out, store, source, assets);
  std::ranges::sort(out.files, [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  for (const ArchivedFile& f : out.files) check_line(f.name);
  return out;
}

}  // namespace mckpt::impl
