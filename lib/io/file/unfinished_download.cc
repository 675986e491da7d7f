// Only looks at names and sizes. Nothing is opened: what is left may be anywhere, and is not read.
#include "io/file/unfinished_download.h"

#include <filesystem>

#include "core/base/text.h"
#include "io/file/folder.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndings[] = {".incomplete", ".part",       ".partial",
                                         ".aria2",      ".crdownload", ".download"};
constexpr std::string_view kHubDownloads = ".cache/huggingface/download";

std::string with_bytes(const std::string& name, const fs::path& path) {
  std::error_code failed;
  const auto bytes = fs::file_size(path, failed);
  return failed ? ""
                : cat("the download did not finish: ", escaped(name), " has ",
                      with_commas(static_cast<std::int64_t>(bytes)), " bytes of it");
}

// "name.ENDING" in the folder.
std::string beside(const fs::path& folder, const std::string& name) {
  for (std::string_view ending : kEndings)
    if (std::string text = with_bytes(cat(name, ending), folder / cat(name, ending)); !text.empty())
      return text;
  return "";
}

// "name.ETAG.incomplete" in the folder where `hf download` keeps what it has begun.
std::string of_hub(const fs::path& folder, std::string_view name) {
  const std::string begin = cat(fs::path(name).filename().string(), ".");
  const fs::path downloads = folder / kHubDownloads / fs::path(name).parent_path();
  std::vector<ListedEntry> entries;
  list_folder(downloads, entries);
  for (const ListedEntry& entry : entries)
    if (entry.name.starts_with(begin) && entry.name.ends_with(kEndings[0]))
      return with_bytes((fs::path(kHubDownloads) / entry.name).string(), downloads / entry.name);
  return "";
}

}  // namespace

std::string unfinished_download(const Folder& folder, std::string_view name) {
  const fs::path path = fs::path(folder.path()) / name;
  std::error_code failed;
  if (fs::is_symlink(path, failed)) {
    const fs::path target = fs::read_symlink(path, failed);
    if (failed || fs::exists(path, failed)) return "";
    const fs::path blob = target.is_absolute() ? target : path.parent_path() / target;
    if (std::string text = beside(blob.parent_path(), blob.filename().string()); !text.empty()) return text;
    return cat("it is a link to ", escaped(target.string()),
               ", which is not there: the download did not finish, or that file was removed");
  }
  if (std::string text = beside(folder.path(), std::string(name)); !text.empty()) return text;
  return of_hub(folder.path(), name);
}

}  // namespace mckpt::impl
