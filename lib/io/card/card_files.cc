// Walks over a folder. A link to a folder above would make the walk endless, so the folders on the way down
// are remembered by their real paths.
#include "io/card/card_files.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/file/place.h"
#include "io/output/host_lock.h"
#include "io/output/staging_marks.h"
#include "io/store/open/beside.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kOfTools[] = {".cache", ".git", ".gitattributes", ".github", ".gitignore"};

bool is_at_or_below(std::string_view name, std::string_view other) {
  return name == other ||
         (name.size() > other.size() && name.starts_with(other) && name[other.size()] == '/');
}

// One walk.
class Walk {
 public:
  Walk(const Folder& folder, const std::vector<std::string>& left_out)
      : folder_(folder), left_out_(left_out) {}

  CardFiles run() {
    enter("", real_path_of(folder_.path()));
    std::ranges::sort(files_.names);
    std::ranges::sort(files_.ignored);
    return std::move(files_);
  }

 private:
  void enter(const std::string& below, const std::string& real) {
    if (std::ranges::find(way_, real) != way_.end()) return files_.ignored.push_back(below);
    way_.push_back(real);
    for (const FolderEntry& e : folder_.entries(below)) {
      std::string name = below.empty() ? e.name : cat(below, "/", e.name);
      if (is_left_out(name, e.name))
        files_.ignored.push_back(name);
      else if (e.folder)
        enter(name, real_path_of(folder_.inside(name)));
      else
        add_file(name);
    }
    way_.pop_back();
  }

  bool is_left_out(const std::string& name, const std::string& last) const {
    if (std::ranges::find(kOfTools, name) != std::end(kOfTools)) return true;
    if (last.ends_with(kStagingSuffix) || last.ends_with(kLockSuffix) || is_staging_mark(last)) return true;
    return std::ranges::any_of(left_out_, [&](const std::string& l) { return is_at_or_below(name, l); });
  }

  void add_file(const std::string& name) {
    try {
      if (folder_.has_file(name)) return files_.names.push_back(name);
    } catch (const Error& e) {
      if (e.code() != Code::kNotAFile) throw;
    }
    files_.ignored.push_back(name);
  }

  const Folder& folder_;
  const std::vector<std::string>& left_out_;
  std::vector<std::string> way_;
  CardFiles files_;
};

}  // namespace

OpenOptions as_files(OpenOptions opening) {
  opening.containers = nullptr;
  return opening;
}

CardFiles card_files(const Folder& folder, const std::vector<std::string>& left_out) {
  return Walk(folder, left_out).run();
}

std::string name_inside(const std::string& folder, const std::string& path) {
  std::string root = cat(real_path_of(folder), "/");
  std::string last = path.substr(path.find_last_of('/') + 1);
  std::string real = cat(real_path_of(parent_folder(path)), "/", last);
  return real.starts_with(root) ? real.substr(root.size()) : "";
}

}  // namespace mckpt::impl
