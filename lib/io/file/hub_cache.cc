// A snapshot is chosen by its name alone; its files are opened like the files of any other folder.
#include "io/file/hub_cache.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

// The name of the revision that refs/main has; nothing without such a file.
std::optional<std::string> revision(const fs::path& repository) {
  std::ifstream file(repository / "refs" / "main", std::ios::binary);
  if (!file) return std::nullopt;
  char bytes[64];
  file.read(bytes, sizeof bytes);
  const std::string_view name(bytes, static_cast<std::size_t>(file.gcount()));
  return std::string(name.substr(0, name.find_first_of(" \t\r\n")));
}

}  // namespace

std::optional<HubSnapshot> hub_snapshot(const std::string& path) {
  const fs::path repository(path);
  std::error_code none;
  const auto has_folder = [&](const char* name) { return fs::is_directory(repository / name, none); };
  if (!has_folder("snapshots")) return std::nullopt;
  // A training run may call its saves snapshots, too.
  const std::string name_of_it =
      fs::absolute(repository / ".", none).lexically_normal().parent_path().filename();
  const bool of_a_cache = name_of_it.starts_with("models--") || has_folder("refs") || has_folder("blobs");
  if (!of_a_cache || fs::exists(repository / "config.json", none)) return std::nullopt;
  std::vector<ListedEntry> entries;
  list_folder(repository / "snapshots", entries);
  std::vector<std::string> snapshots;
  for (ListedEntry& entry : entries) snapshots.push_back(std::move(entry.name));
  const std::optional<std::string> named = revision(repository);
  const std::string name = named ? *named : snapshots.size() == 1 ? snapshots[0] : "";
  if (std::ranges::find(snapshots, name) == snapshots.end())
    throw Error(Code::kUnknownFormat,
                named ? "the model's cache folder has no snapshot that refs/main names"
                      : "the model's cache folder has no refs/main, which names a snapshot")
        .file(path)
        .found(snapshots.empty() ? "no snapshot" : counted(std::ssize(snapshots), "snapshot"))
        .help("name a folder below snapshots/");
  if (fs::is_symlink(repository / "snapshots" / name, none)) return std::nullopt;
  return HubSnapshot{cat("snapshots/", name), named ? "refs/main" : "the only snapshot"};
}

}  // namespace mckpt::impl
