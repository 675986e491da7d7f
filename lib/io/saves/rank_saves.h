// Whether the files of ranks are of one save, by the numbers in them that all ranks of a run have alike: the
// schedule of the learning rate, options of the optimizer's groups, counts of steps and epochs, the scale of
// a loss.
//
//   extra_state_world_size_2_rank_0.pt   lr_scheduler.last_epoch 10
//   extra_state_world_size_2_rank_1.pt   lr_scheduler.last_epoch 5       of another save
//
// Random states, places in the data, losses and times are each rank's own, and are not compared.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Folder;
class TorchStore;

// Whether all ranks of a run have one number under this name: "lr_scheduler.last_epoch", "state.7.step".
// False where ranks may have their own.
bool ranks_agree_on(std::string_view name);

// Collects what differs, and says it once for each file.
class RankSaves {
 public:
  explicit RankSaves(TorchStore& store) : store_(store) {}

  // Two files have other numbers under a name of which ranks_agree_on() is true.
  void differ(i32 there, i32 here, std::string_view name, std::string_view value_there,
              std::string_view value_here);
  // Compares the objects of files that were added for ranks of one group. pre: their numbers ascend.
  void compare_objects(const std::vector<i32>& files);
  // Compares the numbers of files with random states that are in the folder, whichever ranks they are of:
  // accelerate's random_states_0.pkl and Trainer's rng_state_0.pth, of torch.save or pickled alone. Adds the
  // findings, and a warning about a file that is too large or cannot be read.
  void compare_random_states(const Folder& folder);
  // Adds the findings to the store: kMixedSaves, each with the names of what differs and both values.
  void report() const;

 private:
  struct Unlike {
    i32 there = -1;
    std::vector<std::string> values;
  };
  TorchStore& store_;
  std::map<i32, Unlike> by_file_;
};

}  // namespace mckpt::impl
