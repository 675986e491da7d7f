// The files of ranks in a folder, joined: each group of them by itself.
//
//   model_world_size_2_rank_0.pt, model_world_size_2_rank_1.pt     the model
//   optim_world_size_2_rank_0.pt, optim_world_size_2_rank_1.pt     names begin with "optim:"
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/store/names/torch_names.h"

namespace mckpt::impl {

class Folder;
class TorchStore;
struct OpenedTorchFile;

// How files are called. Empty functions: as rank_name() says.
struct RankFileNames {
  std::function<RankName(std::string_view path)> name_of{};
  std::function<std::string(const RankName& name)> path_of{};
};

// Adds the tensors of all groups to the store, and what is wrong with the files.
void add_rank_files(TorchStore& store, const Folder& folder, std::vector<OpenedTorchFile>& files,
                    const RankFileNames& names);

}  // namespace mckpt::impl
