// Which files a result in a folder consists of: the data and indexes that mckpt, Megatron and transformers
// write, and the config, tokenizer, documentation and code that are copied beside them. All else in such a
// folder is somebody's own work, and is never removed with it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt {

// Names of files, without folders.
using FileNames = std::set<std::string, std::less<>>;

// The names of the files of `folder` that a conversion copies beside the data of its result: config,
// tokenizer, code, objects, and those in hf_assets/. A path that is not a folder has none.
FileNames files_copied_beside(const std::string& folder);

// The files below `folder` that are not part of a result, in natural order, relative to it; an empty folder
// ends in '/'. All of them where the folder is no checkpoint. Where it has a manifest, that alone tells what
// belongs to the result; else the names do. `copied`: names of files that the new result has as well.
std::vector<std::string> foreign_files(const std::string& folder, const FileNames& copied);

}  // namespace mckpt
