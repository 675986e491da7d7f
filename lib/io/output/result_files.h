// Which files a folder may lose when a new result replaces it: the data and indexes that mckpt, Megatron and
// transformers write, and the config, tokenizer, documentation and code that are copied beside them. All
// other files in such a folder are the user's own and are never removed with it.
//
//   ckpt/release/  __0_0.distcp  .metadata  hf_assets/config.json    parts of a result: may be replaced
//                  notes.txt  plots/loss.png                         foreign: `overwrite` is refused
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
// ends in '/'. All files if the folder is not a checkpoint (no .metadata, config.json, .safetensors or
// .distcp in it). If the folder has a manifest, the manifest alone decides what belongs to the result;
// otherwise the names do. `copied`: side files of the new result, which may replace files of the same names.
// Throws kNotFound or kReadFailed if a folder cannot be listed.
std::vector<std::string> foreign_files(const std::string& folder, const FileNames& copied);

}  // namespace mckpt::impl
