// Where the assets of one side are, for the checks of one side and of two.
//
//   ckpt/hf_assets/config.json            asset_folder(): a checkpoint that is made of a model
//   model/config.json                     asset_folder(): the folder of a model
//   ckpt/huggingface/config.json          a checkpoint of a run, with files of the run beside
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

class Folder;
class Store;

inline constexpr std::string_view kConfig = "config.json";

struct AssetFolder {
  std::string path{};     // "": there is none
  bool of_a_run = false;  // other files of the folder belong to a training run, and are not assets
  bool given = false;     // the caller names the folder, which is not the side's own
};

// hf_assets in a checkpoint, or the folder of a model. "": there is none.
std::string asset_folder(const Store& store);
// The text of a JSON file among the assets.
std::string asset_text(const Folder& folder, const std::string& name);
// The name of an asset relative to the root of the store.
std::string path_in_store(const Store& store, const std::string& folder, const std::string& name);

}  // namespace mckpt::impl
