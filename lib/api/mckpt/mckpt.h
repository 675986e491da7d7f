// All of the library: open, read, view, plan, prove, run, compare.
//
//   find_package(mckpt REQUIRED)
//   target_link_libraries(program PRIVATE mckpt::mckpt)
//
// The library prints nothing, reads no command line and installs no signal handlers. Errors are exceptions,
// everything else is a value. The C interface is in mckpt/c.h.
#pragma once

#include "mckpt/checkpoint.h"
#include "mckpt/conversion.h"
#include "mckpt/diff.h"
#include "mckpt/error.h"
#include "mckpt/export.h"
#include "mckpt/finding.h"
#include "mckpt/load.h"
#include "mckpt/observer.h"
#include "mckpt/options.h"
#include "mckpt/plain_plans.h"
#include "mckpt/plans.h"
#include "mckpt/plot.h"
#include "mckpt/verify.h"

namespace mckpt {

MCKPT_API const char* version();  // "0.2.0"

}  // namespace mckpt
