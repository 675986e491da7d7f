// Reads $MCKPT_MODULE_PATH and the place of the program, by the link /proc/self/exe.
#include "runtime/system/module_folders.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/text.h"

namespace mckpt::impl {

// The user's folders come first; beside the program modules are in a build, in ../lib/mckpt when installed.
std::vector<std::string> module_folders() {
  std::vector<std::string> folders;
  const char* listed = std::getenv("MCKPT_MODULE_PATH");
  for (std::string_view rest = listed ? listed : ""; !rest.empty();) {
    std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.empty()) folders.push_back(cat(folder, "/"));
  }
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    std::string own = cat(program.parent_path().string(), "/");
    folders.push_back(own);
    folders.push_back(cat(own, "../lib/mckpt/"));
  }
  return folders;
}

}  // namespace mckpt::impl
