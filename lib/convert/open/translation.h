// Translation: a checkpoint of Megatron under the names of fsdp_dtensor.
//
//   torch_dist                 decoder.layers.mlp.linear_fc1.weight [2, 28, 12]   -->   ...layers.1.mlp.linear_fc1.weight_v [14, 12]
//   files of ranks             mp_rank_00/..., mp_rank_01/...                     -->   tensors of all ranks as one
//   a state dict               model.layers.0...                                  -->   model.module.layers.0...
//   both formats of Megatron   layers under the names of another form             -->   those of the model
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convert/keys/key_table.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class PieceStore;
class Store;
struct LayerPattern;
enum class KeyNames : u8;
struct CheckpointOptions;
struct HfModel;
struct RunFacts;
struct RunSizes;
struct RunSetup;

struct Translation {
  std::unique_ptr<PieceStore> store;  // null: the names are fsdp_dtensor's
  std::unique_ptr<RunFacts> facts;    // null: each object of the store is one
  KeyTable::Cells cells{};            // in which the view stores fused tensors
  std::vector<std::string> left_states{};
  std::vector<Finding> oddities{};
};

// Whether the checkpoint is a state dict whose names become the names of fsdp_dtensor.
bool gets_names_of_fsdp(const Store& store, KeyNames names);

// Takes the store if its names are others. The views of ranks and of torch_dist set in `setup` what they
// find; the caller sets the spelling in it if gets_names_of_fsdp(). `run`: facts that the checkpoint or the
// caller gives of the run that wrote it, in `cells`. `members`: the pattern of a state dict whose layers are
// in groups; they get the names without groups unless `setup` has it too. Throws what making the views
// throws.
Translation translated(std::unique_ptr<Store>& store, const HfModel& model, RunSetup& setup,
                       const RunSizes& run, KeyTable::Cells cells, const CheckpointOptions& options,
                       const LayerPattern* members);

}  // namespace mckpt::impl
