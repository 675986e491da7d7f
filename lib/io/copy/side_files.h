// Files of a result that contain no tensors: copies of a source's files, and texts. They are chosen, read and
// summed when the conversion is planned, so that one that cannot be copied is refused before anything is
// written, and so that a conversion does not resume if one of them changed.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Folder;

struct SideFile {
  std::string name;
  i64 bytes = 0;
  std::string sha256;
};

struct SideFiles {
  std::string from{};  // the folder of those that are copied
  std::vector<SideFile> copies{};
  std::map<std::string, std::string, std::less<>> texts{};  // by name
  std::vector<std::string> left_out{};                      // folders there that are not copied

  // Reads a file of `folder` that is going to be copied. Throws where it cannot be: kNotFound, kNotAFile,
  // kBadPath, and kNotHeld for a name that is not UTF-8.
  void add_copy(const Folder& folder, const std::string& name);
  // Another text for other names or contents.
  std::string identity() const;
  i64 bytes() const;
  std::vector<std::string> names() const;
  bool empty() const { return copies.empty() && texts.empty(); }
  // Writes them into the folder `to`, which is made. Throws what reading and writing do, kReadFailed where a
  // file is not the one that was planned.
  void write(const std::string& to, bool durable) const;
};

}  // namespace mckpt::impl
