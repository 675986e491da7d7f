// The .metadata file of a large model is tens of megabytes: it is emitted in pieces, here for its size and
// digest and once more when it is written.
#include "convert/plan/iteration.h"

#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/write/layout.h"
#include "io/output/output_files.h"
#include "io/store/names/iteration_names.h"
#include "io/store/store.h"
#include "io/sums/sha256.h"
#include "mappings/fsdp/setup.h"

namespace mckpt::impl {
std::string plan_dcp_folder(Planned& planned, const DcpLayout& layout, const std::string& path) {
  planned.path = path;
  planned.files = layout.files();
  Sha256 sha;
  layout.write_metadata([&](std::string_view text) {
    planned.bytes += std::ssize(text);
    sha.update(std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  });
  for (const OutputFile& f : planned.files) planned.bytes += f.bytes;
  return sha.hex_digest();
}

void place_iteration(Planned& planned, const std::string& target, std::optional<i64> iteration) {
  FsdpFolder folder(target, iteration);
  planned.path = folder.path();
  planned.tracker = folder.tracker();
  if (std::optional<i64> later = folder.later_tracked())
    planned.outcome.warn(cat("the output folder has iteration ", *later, ", but Megatron will load ",
                             iteration ? cat("iteration ", *iteration) : std::string("release"),
                             " from it: ", kTrackerName, " names the iteration that was written last"));
}

std::string plan_iteration(Planned& planned, const DcpLayout& layout, const std::string& target,
                           std::optional<i64> iteration, FsdpFolder::Beside beside) {
  place_iteration(planned, target, iteration);
  std::string metadata = plan_dcp_folder(planned, layout, planned.path);
  add_beside(planned, std::move(beside));
  return metadata;
}

std::optional<i64> iteration_of_result(const Store& on_disk, std::optional<i64> wanted, bool has_states,
                                       const std::function<std::optional<i64>()>& said, Notes& notes) {
  if (!wanted) wanted = iteration_of(on_disk.root());
  if (wanted || !has_states) return wanted;
  wanted = said();
  if (!wanted)
    notes.warn(
        "the states are written to the folder release, because the source names no iteration: Megatron loads only weights from there and starts at iteration 0; `iteration` N sets one");
  return wanted;
}

std::string fsdp_format(const FsdpSetup& setup) {
  return setup.saves_state_dict() ? "state dict of Megatron-FSDP v2" : "fsdp_dtensor";
}

void set_run(Planned& planned, std::string format, const Grid& grid, const DcpLayout& layout) {
  planned.format = std::move(format);
  planned.grid = grid;
  planned.extent = cat(counted(grid.world(), "rank"), " (", to_string(grid), "), ",
                       counted(layout.chunk_count(), "chunk"), ", ", human_bytes(planned.bytes));
}

}  // namespace mckpt::impl
