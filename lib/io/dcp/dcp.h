// Reading folders of torch.distributed.checkpoint ("DCP"), the container that torch FSDP2, Megatron-FSDP
// and Megatron's torch_dist all write:
//
//   iter_0000010/
//     .metadata        one pickle: every tensor's shape, its chunks, and where the bytes of each chunk are
//     __0_0.distcp     what rank 0 wrote: torch.save archives, one behind the other, one for each chunk
//     __1_0.distcp     what rank 1 wrote; __<rank>_<n>: a rank may write several files
//
// Opening (open_dcp(), io/store/open/drivers.inc) reads .metadata alone, so it takes milliseconds at any
// model size.
// The header of a chunk's own archive is read when resolve() asks where that chunk's data are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
enum class CheckedPart : u8;
class Store;
struct Finding;
struct RunSizes;

// The dialect of the names in a DCP folder; nothing if the store is not one.
std::optional<DcpDialect> dcp_dialect(const Store& store);

// The facts that the folder records of the run that wrote it (sizes of the grid, layers, experts). All fields
// are empty if it says nothing, or if the store is not a DCP folder.
RunSizes dcp_run_sizes(const Store& store);

// The names of all items in the order of planner_data: the items of the last rank in the order in which it
// saved them, then the items that the rank before it adds, and so on. A view has the items of the folder that
// it sees, under the names on disk. Names live as long as the store. Empty where the folder has no paths, or
// is not a DCP folder with one .metadata.
std::vector<std::string_view> dcp_saved_order(const Store& store);

// Names of the files for want of which Megatron does not load a torch_dist folder: metadata.json, common.pt.
// They are missing, or metadata.json is not one that Megatron takes. Opening warns of them. Empty for any
// other store.
std::vector<std::string> lost_load_files(const Store& store);

// Losses that leave every box and byte in order: names that do not fit together, files of two saves in one
// folder, copies of one tensor that differ, a data file that is a copy of another one. Reads names, a few
// small objects, what several ranks saved under one name, and headers of records in files that are alike.
// Returns nothing for a store that is not a DCP folder.
std::vector<Finding> dcp_damage(const Store& store, CheckedPart part);

// The number of data files that could have changed places with another one without anything in the folder
// showing it. 0 for any other store.
i64 dcp_alike_files(const Store& store);

// Whether a record that was read so far carries values beside the elements of its tensor, such as attributes.
// torch's DCP copies the elements alone. False for any other store.
bool dcp_carries_values(const Store& store);

}  // namespace mckpt::impl
