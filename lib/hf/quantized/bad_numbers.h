// How a view over quantised weights handles codes and scales that no writer means, such as NaN
// (value_faults.h).
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

enum class BadNumbers : u8 {
  kShow,    // values are made of them as of others: for whoever shows or compares values
  kReport,  // the same, and the conversion reports them
  kRefuse,  // they are refused
};

}  // namespace mckpt::impl
