// The way of every conversion through the program, alone or as ranks:
//
//   plan, show the notes, prove, show the account, check   rank 0 first: what it refuses is said once
//   run                                                    all ranks; not with --dry-run
//   report                                                 rank 0
#pragma once

#include <functional>
#include <string_view>

#include "core/base/error_code.h"

namespace mckpt::impl {

struct Conversion;
struct ConvertOptions;
struct GlobalFlags;

// `command`: "convert" or "export", as the answer names it. `shares_work`: among ranks; else rank 0 does all.
Exit run_conversion(const std::function<Conversion()>& plan, std::string_view command,
                    const ConvertOptions& options, const GlobalFlags& flags, bool shares_work = true);

}  // namespace mckpt::impl
