// overlayfs decides whether a folder can be renamed before it looks at the place. A folder with files is a
// place that no rename takes, so the answer is had without any change: EXDEV, or that the place is not empty.
#include "io/output/lower_layer.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdio>

#include "core/base/text.h"

namespace mckpt::impl {

std::string help_of_lower_layer(const std::string& folder) {
  const std::string name = escaped(folder, 4096);
  return cat("choose another name, or make it a folder of the upper layer: cp -a ", name, " ", name,
             ".copy && rm -r ", name, " && mv ", name, ".copy ", name);
}

bool is_of_lower_layer(const std::string& folder, const std::string& full) {
  struct statfs fs;
  if (::statfs(folder.c_str(), &fs) != 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC) return false;
  return ::rename(folder.c_str(), full.c_str()) != 0 && errno == EXDEV;
}

}  // namespace mckpt::impl
