// The options of commands whose ranks watch each other, and the one place where such a command joins its job.
#pragma once

#include "runtime/watch/limits.h"

namespace mckpt::impl {

class CommandLine;

struct RankLimits : WatchLimits {
  void declare(CommandLine& line);
  // Throws kUsage. Called when the line is parsed.
  void check() const;
  // Joins the job and watches its ranks from here on. Signals that ask to stop are taken as such from then on
  // too: a launcher sends them to all ranks when it finds one of them dead, and those are to tell first.
  void join() const;
};

}  // namespace mckpt::impl
