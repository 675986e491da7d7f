// SideFiles: the files of a result that contain no tensors: copies of files of the source, and texts.
//
//   copies    config.json, tokenizer.json, ... of a model, in the hf_assets/ of the result
//   texts     mckpt_tensors.json, which mckpt makes; a run_config.yaml in which a number has to change
//
// They are chosen, read and summed when the conversion is planned. So a file that cannot be copied is refused
// before anything is written, and a conversion does not resume if one of the files changed since.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

class Folder;

// A file to copy, as it was when the conversion was planned.
struct SideFile {
  std::string name;
  i64 bytes = 0;
  std::string sha256;
};

// A value; planning fills it, write() leaves it as it is. Texts are in memory, copies are not.
struct SideFiles {
  std::string from{};     // the folder of the files that are copied
  OpenOptions opening{};  // how that folder is opened
  std::vector<SideFile> copies{};
  std::map<std::string, std::string, std::less<>> texts{};  // by name
  std::vector<std::string> left_out{};                      // folders in `from` that are not copied

  // Adds a file of `folder` to the copies; reads it for its SHA-256. Throws if the file cannot be copied:
  // kNotFound, kNotAFile, kBadPath, kReadFailed, and kNotHeld for a name that is not UTF-8, which the
  // manifest could not list.
  void add_copy(const Folder& folder, const std::string& name);
  // A text that is different for different names or contents; part of the plan that --resume compares.
  std::string identity() const;
  i64 bytes() const;
  std::vector<std::string> names() const;
  bool empty() const { return copies.empty() && texts.empty(); }
  // Writes all files into the folder `to`, which is created if it does not exist; existing files of the names
  // are replaced. Throws what reading and writing throw, and kReadFailed if a file of the source is not the
  // one that was planned.
  void write(const std::string& to, bool durable) const;
};

}  // namespace mckpt::impl
