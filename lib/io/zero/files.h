// The files of one save of DeepSpeed ZeRO: which names of a folder belong to it, and what their headers say.
//
//   mp_rank_00_model_states.pt                        models[0]       rank -1: of all ranks
//   zero_pp_rank_0_mp_rank_00_optim_states.pt         optimizers[0]   rank 0
//   zero_pp_rank_1_mp_rank_00_optim_states.pt         optimizers[1]   rank 1
//   layer_0_expert_3_mp_rank_00_model_states.pt       experts[3]      the weights with which training computes
//   expp_rank_0_mp_rank_00_optim_states.pt            others[0]       the optimizer of experts, without ZeRO
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/zero/states.h"

namespace mckpt::impl {

class Folder;
class ZeroStore;

// A file that could be read; `file` is its number in the store.
template <typename States>
struct ZeroFile {
  i64 rank = -1;
  i32 file = -1;
  std::string path{};
  States states{};
  bool says_rank = false;  // the file has the name under which it was saved
};

// A file of which nothing is known but its tensors.
struct ZeroPlainFile {
  i32 file = -1;
  std::string path{};
};

struct ZeroSave {
  i64 model_rank = 0;                               // tensor-parallel
  std::string other_rank{};                         // a file of another one; "": there is none
  i32 first_file = 0;                               // of the store; the save's files follow each other
  i64 stage = 0, ranks = 0;                         // stage 0: not ZeRO
  std::vector<ZeroFile<ZeroModelStates>> models{};  // at least one; ranks ascend
  std::vector<ZeroFile<ZeroOptimizerStates>> optimizers{};
  std::vector<ZeroPlainFile> experts{}, others{};
  const ZeroModelStates& model() const { return models[0].states; }
  i32 end_file() const {
    const std::size_t count = models.size() + optimizers.size() + experts.size() + others.size();
    return first_file + static_cast<i32>(count);
  }
};

// Reads the headers of all files and adds those that can be read to the store: what each tensor-parallel rank
// saved, which is one save for most. Files that are missing, cannot be read, or are of another save become
// findings, and files of another number of ranks are left out. Throws kUnsupportedTorchFile for folders whose
// files cannot be joined (pipelines, AutoEP, universal checkpoints), kShardMissing if no file of the model is
// there.
std::vector<ZeroSave> read_zero_saves(const Folder& folder, ZeroStore& store);

// Adds findings for files that are not of one save (other parameters, steps or versions), and for copies of
// the file of another rank.
void check_one_save(const ZeroSave& save, const Folder& folder, ZeroStore& store);
// The same of what another tensor-parallel rank saved, whose parameters have other shapes.
void check_other_rank(const ZeroSave& first, const ZeroSave& other, ZeroStore& store);

// Whether the files say which rank each is of: by the names under which they were saved, or by where
// parameters are in the parts of ZeRO 1 and 2, if that differs from rank to rank.
bool says_order(const ZeroSave& save);

}  // namespace mckpt::impl
