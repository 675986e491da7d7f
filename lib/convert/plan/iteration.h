// A result that is an iteration of a training run: DST/release or DST/iter_0000010, with the tracker file
// beside it. The planners of imports, reshardings and renamings end with plan_iteration(), which fixes all
// places and sizes of the result.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "convert/output/fsdp_folder.h"
#include "core/base/int.h"

namespace mckpt::impl {

class DcpLayout;
struct Planned;
struct FsdpSetup;
class Notes;
class Store;
struct Grid;

// Sets the folder of a result that is not an iteration, and the layout's files with their final sizes, in the
// conversion. Returns the digest of the .metadata file, which depends on every key, type, chunk and place.
// pre: the layout is complete and outlives the conversion.
std::string plan_dcp_folder(Planned& planned, const DcpLayout& layout, const std::string& path);

// Sets the path of the conversion to the iteration's, and the tracker; warns if a later one is tracked.
// Without `iteration` the folder is "release".
void place_iteration(Planned& planned, const std::string& target, std::optional<i64> iteration);

// The iteration of a result: `wanted`, or the iteration of the source's folder. With states of the optimizer
// also what `said` returns, RunFacts::iteration() of the source: Megatron loads no states from `release`,
// where it starts at iteration 0. If there is none, a warning says so.
std::optional<i64> iteration_of_result(const Store& on_disk, std::optional<i64> wanted, bool has_states,
                                       const std::function<std::optional<i64>()>& said, Notes& notes);

// Sets the place of the iteration, the layout's files with their final sizes, the files beside them and the
// tracker in the conversion; without `iteration` the folder is "release". Returns what
// plan_dcp_folder() returns, with its precondition.
std::string plan_iteration(Planned& planned, const DcpLayout& layout, const std::string& target,
                           std::optional<i64> iteration, FsdpFolder::Beside beside);

// Sets the format of the result and whose run it is: the grid, and as extent "4 ranks (tp=2 cp=1 ep=1 etp=1
// pp=1 dp=2), 53 chunks, 72.5 KiB". pre: plan_iteration() was called.
void set_run(Planned& planned, std::string format, const Grid& grid, const DcpLayout& layout);
// The format that Megatron-FSDP saves with this set-up: "fsdp_dtensor", or the state dict of v2.
std::string fsdp_format(const FsdpSetup& setup);

}  // namespace mckpt::impl
