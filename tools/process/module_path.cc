// Reads the variable at every call: there are few.
#include "tools/process/module_path.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace mckpt::impl {

std::vector<std::string> module_path() {
  std::vector<std::string> folders;
  const char* listed = std::getenv("MCKPT_MODULE_PATH");
  for (std::string_view rest = listed ? listed : ""; !rest.empty();) {
    std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

}  // namespace mckpt::impl
