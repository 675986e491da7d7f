// A folder that torch_checkpointing saved: a file for each item and rank.
//
//   model_0.pt model_1.pt  optimizer_0.pt optimizer_1.pt  step_0.pt step_1.pt   metadata.pkl
//   rank_0/weights.pt rank_1/weights.pt                                         where the layout says so
//
// metadata.pkl names the files, and says how the tensors of safetensors files are parts of larger ones; a
// torch.save file says it itself. A checkpoint whose items are never resharded has no metadata.pkl.
#pragma once

#include <string_view>
#include <vector>

namespace mckpt::impl {

struct OpenedTorchFile;
struct RankName;

// Without metadata.pkl: whether each file is of the rank that its name ends with, by the meshes of its
// tensors. One item at least must have such tensors, and each item a file of every rank.
bool are_files_of_items(const std::vector<OpenedTorchFile>& files);
// The item and the rank of "model_3.pt".
RankName item_name(std::string_view file);

}  // namespace mckpt::impl
