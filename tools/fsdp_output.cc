#include "tools/fsdp_output.h"

#include "io/file/sha256.h"

namespace mckpt {

FsdpOutput plan_output(const DcpLayout& layout, const ConvertOptions& options, std::optional<i64> iteration,
                       ConvertReport& report, const GlobalFlags& flags) {
  FsdpOutput out{FsdpFolder(options.target, iteration, !options.no_sync), layout.files(), ""};
  Sha256 sha;
  layout.write_metadata([&](std::string_view text) {
    report.bytes += std::ssize(text);
    sha.update(std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  });
  out.metadata_sha256 = sha.hex_digest();
  for (const OutputFile& f : out.files) report.bytes += f.bytes;
  report.output = out.folder.path();
  note_plan(flags, report);
  if (std::optional<i64> later = out.folder.later_tracked())
    warn(flags, cat("DST holds iteration ", *later, "; with this one Megatron loads ",
                    iteration ? cat("iteration ", *iteration) : std::string("release"),
                    " there: latest_checkpointed_iteration.txt names what was written last"));
  return out;
}

}  // namespace mckpt
