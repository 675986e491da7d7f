// The numbers of a conversion in the structs of lib/options/mckpt: all doors show the same.
#pragma once

#include "mckpt/account.h"
#include "mckpt/run_report.h"

namespace mckpt::impl {

struct Conversion;
struct RunResult;

// pre: the conversion is proved
mckpt::Account account_of(const Conversion& conversion);
// Without the notes, which the doors show in different ways.
mckpt::RunReport run_report_of(const Conversion& conversion, const RunResult& result);

}  // namespace mckpt::impl
