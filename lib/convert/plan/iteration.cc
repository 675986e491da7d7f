// The .metadata file of a large model is tens of megabytes: it is emitted in pieces, here for its size and
// digest and once more when it is written.
#include "convert/plan/iteration.h"

#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/write/layout.h"
#include "io/file/sha256.h"
#include "io/output/output_files.h"
#include "io/store/open/iteration_names.h"
#include "mappings/fsdp/setup.h"

namespace mckpt::impl {

std::string plan_dcp_folder(Conversion& conversion, const DcpLayout& layout, const std::string& path) {
  conversion.path = path;
  conversion.files = layout.files();
  conversion.layout = &layout;
  Sha256 sha;
  layout.write_metadata([&](std::string_view text) {
    conversion.bytes += std::ssize(text);
    sha.update(std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  });
  for (const OutputFile& f : conversion.files) conversion.bytes += f.bytes;
  return sha.hex_digest();
}

void place_iteration(Conversion& conversion, const std::string& target, std::optional<i64> iteration) {
  FsdpFolder folder(target, iteration);
  conversion.path = folder.path();
  conversion.tracker = folder.tracker();
  if (std::optional<i64> later = folder.later_tracked())
    conversion.outcome.warn(cat("the output folder has iteration ", *later, ", but Megatron will load ",
                                iteration ? cat("iteration ", *iteration) : std::string("release"),
                                " from it: ", kTrackerName, " names the iteration that was written last"));
}

std::string plan_iteration(Conversion& conversion, const DcpLayout& layout, const std::string& target,
                           std::optional<i64> iteration, FsdpFolder::Beside beside) {
  place_iteration(conversion, target, iteration);
  std::string metadata = plan_dcp_folder(conversion, layout, conversion.path);
  add_beside(conversion, std::move(beside));
  return metadata;
}

std::string fsdp_format(const FsdpSetup& setup) {
  return setup.saves_state_dict() ? "state dict of Megatron-FSDP v2" : "fsdp_dtensor";
}

void set_run(Conversion& conversion, std::string format, const Grid& grid, const DcpLayout& layout) {
  conversion.format = std::move(format);
  conversion.grid = grid;
  conversion.extent = cat(counted(grid.world(), "rank"), " (", to_string(grid), "), ",
                          counted(layout.chunk_count(), "chunk"), ", ", human_bytes(conversion.bytes));
}

}  // namespace mckpt::impl
