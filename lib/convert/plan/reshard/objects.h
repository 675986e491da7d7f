// What becomes of a checkpoint's objects when the checkpoint is resharded:
//
//   source                                  result
//   args, iteration                         args, iteration with the new grid and number
//   param_groups, random states, ...        copied unchanged
//   run_config.yaml                         a side file with the new grid
//   no args, of another format              args made of the model's config
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/jobs/carried_record.h"
#include "convert/output/fsdp_folder.h"
#include "core/base/int.h"
#include "core/base/notes.h"

namespace mckpt::impl {

class CheckpointModel;
class DcpLayout;
class ReshardSource;
class Store;
struct FsdpRun;
struct Grid;

// The outcome: records become tasks of the job, changed files become side files.
struct ReshardedObjects {
  std::vector<CarriedRecord> records;  // objects that are copied as they are
  ChangedFiles changed_files;          // new contents of files beside the data
  i64 left_out = 0;                    // objects of the source that the result does not have
  bool has_states = false;             // of the optimizer, which Megatron's loader takes by the iteration
  Notes notes;
};

// What the view of a torch_dist folder does not show: objects of the folder, and entries of its common state
// for which fsdp_dtensor has no place. Nothing for a checkpoint of another format.
struct HiddenObjects {
  std::vector<std::string> names;  // for a note: "common_state.x", "13 _extra_state objects"
  i64 count = 0;                   // of objects
  // A warning where states are kept without the options of their parameters; else ""
  std::string lost_options{};
};
HiddenObjects hidden_objects(const CheckpointModel& model, bool weights_only);

// The assets that the result gets. Those that mckpt put beside a checkpoint are copied even if the model is
// treated as unknown.
SideFiles reshard_assets(const ReshardSource& source);

// Adds the objects of the result to the layout, in the file of rank 0. pre: all chunks of that file are in
// the layout. `iteration`: the new one, if it changes.
ReshardedObjects reshard_objects(const ReshardSource& source, const FsdpRun& run,
                                 std::optional<i64> iteration, DcpLayout& layout);

}  // namespace mckpt::impl
