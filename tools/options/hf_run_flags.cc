// Each group declares its own flags, under its own heading.
#include "tools/options/hf_run_flags.h"

#include "convert/rank/rank_share.h"

namespace mckpt::impl {

void HfRunFlags::declare(CommandLine& line) {
  model.declare(line);
  grid.declare(line);
  fsdp.declare(line);
  spelling.declare(line);
  pattern.declare(line);
  values.declare(line);
}

ShareRun HfRunFlags::run() const {
  ShareRun run;
  run.grid = grid.grid();
  run.model = model.options(), run.values = values.options();
  run.fsdp = fsdp.setup(run.grid), run.frozen = fsdp.frozen();
  run.spelling = spelling.spelling(), run.hybrid_pattern = pattern.text();
  return run;
}

}  // namespace mckpt::impl
