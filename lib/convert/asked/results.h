// The numbers of conversions and of tensors in the structs of lib/options/mckpt: all doors show the same.
#pragma once

#include "mckpt/account.h"
#include "mckpt/run_report.h"
#include "mckpt/statistics.h"

namespace mckpt::impl {

struct Conversion;
struct RunResult;
struct TensorStats;

// pre: the conversion is proved
mckpt::Account account_of(const Conversion& conversion);
// Without the notes, which the doors show in different ways.
mckpt::RunReport run_report_of(const Conversion& conversion, const RunResult& result);

mckpt::Statistics statistics_of(const TensorStats& stats);

}  // namespace mckpt::impl
