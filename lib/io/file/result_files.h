// Which files a result in a folder consists of: the data and indexes that mckpt, Megatron and transformers
// write, and the config, tokenizer, documentation and code that are copied beside them. All else in such a
// folder is somebody's own work, and is never removed with it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// Names of files, relative to the folder of a result: "hf_assets/config.json".
using FileNames = std::set<std::string, std::less<>>;

// The files below `folder` that are not part of a result, in natural order, relative to it; an empty folder
// ends in '/'. All of them if the folder is not a checkpoint. If it has a manifest, that alone decides what
// belongs to the result; else the names do. `copied`: what the new result has at the same places beside its
// data.
std::vector<std::string> foreign_files(const std::string& folder, const FileNames& copied);

}  // namespace mckpt::impl
