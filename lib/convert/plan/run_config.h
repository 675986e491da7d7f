// Files beside the data of a checkpoint whose text names the grid: the run_config.yaml of Megatron-Bridge.
#pragma once

#include "convert/output/fsdp_folder.h"

namespace mckpt::impl {

class Store;
struct Grid;

// Their contents with the new grid. `store`: the source as it is on the disk.
ChangedFiles files_with_grid(const Store& store, const Grid& grid);

}  // namespace mckpt::impl
