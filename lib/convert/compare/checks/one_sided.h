// Files that one of two folders with assets has alone, in sentences that name the folder:
//
//   not compared: tokenizer.json, which only m/llama has
#pragma once

#include <span>
#include <string>
#include <vector>

#include "convert/compare/checks/asset_folder.h"

namespace mckpt::impl {

class Folder;
class Store;

// A file, a folder or an entry of an index that only one of the two folders has.
struct OneSided {
  std::string name;
  bool in_first;
  bool compared = true;  // false: nobody looks into it, or no conversion takes it along
  std::string folder{};  // that has it, where that is not the side
};

// The assets in the folder.
std::vector<std::string> assets_in(const Folder& folder, const AssetFolder& of);
// `models`: the two are folders of models, and neither is what a conversion keeps of one.
std::vector<OneSided> on_one_side(const Folder& a, const AssetFolder& of_a, const Folder& b,
                                  const AssetFolder& of_b, bool models);
// Folders that both have, such as onnx/: nobody looks into them.
std::vector<std::string> folders_of_both(const Folder& a, const AssetFolder& of_a, const Folder& b,
                                         const AssetFolder& of_b);
// The path of the folder, for a sentence: where the caller does not name it, the path of its side.
std::string folder_path(const AssetFolder& folder, const Store& side);
// "tokenizer.json, which only m/llama has"
std::string alone_text(const Store& tested, const Store& source, std::span<const OneSided> alone);

}  // namespace mckpt::impl
