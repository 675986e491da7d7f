// Each group declares its own flags, under its own heading.
#include "tools/options/hf_run_flags.h"

namespace mckpt::impl {

void HfRunFlags::declare(CommandLine& line) {
  model.declare(line);
  grid.declare(line);
  fsdp.declare(line);
  spelling.declare(line);
  pattern.declare(line);
  values.declare(line);
}

}  // namespace mckpt::impl
