// Options of verify and diff (lib/options/mckpt/check_options.h) become options of the engine.
#pragma once

#include "convert/asked/words.h"
#include "convert/compare/diff/diff.h"
#include "convert/compare/verify.h"
#include "mckpt/check_options.h"

namespace mckpt::impl {

// A verification without a source. `what`: the path.
VerifyOptions verify_options(const mckpt::VerifyOptions& options, const Opening& what);
// `what`: both paths.
CompareOptions compare_options(const mckpt::CompareOptions& options, const Opening& what);
// Without the choice of tensors and the tolerances, which a command line has in another form.
DiffOptions diff_options(const mckpt::DiffOptions& options, const Opening& what);

}  // namespace mckpt::impl
