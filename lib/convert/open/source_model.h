// Which model a checkpoint is of: the assets that mckpt put beside the checkpoint, or those that the user
// names, or a model that no table knows.
//
//   ckpt/release/.metadata, __0_0.distcp, ...
//   ckpt/release/hf_assets/config.json, mckpt_tensors.json, ...    own_assets(), kept_map()
#pragma once

#include <string>

namespace mckpt::impl {

class Store;
struct CheckpointOptions;
struct HfModel;
struct OpenOptions;

// The folder of assets that mckpt put beside the checkpoint; "" if there is none.
std::string own_assets(const Store& store);
// The folder with the config.json of what is at the path: the path itself, or the assets that mckpt put
// beside the checkpoint there.
std::string folder_with_config(const std::string& path, const OpenOptions& opening);
// The text of the map file that the checkpoint was made with, as its own assets keep it; "" if it was made
// without.
std::string kept_map(const Store& store);

// "'optim.state.w.exp_avg' and 3 more": the tensors of a DCP folder that no known format has; "" if there are
// none.
std::string keys_of_no_format(const Store& store);

// Opens the model. Throws what open_hf_model() throws; kUnknownAssets if nothing says which model it is;
// kContradiction if the model that the user names has fewer rows of the vocabulary than the checkpoint's own.
HfModel model_of(const Store& store, const CheckpointOptions& options);

}  // namespace mckpt::impl
