// The checks of one store (verify.h has what each looks at), and the check that a finding belongs to.
#pragma once

#include <cstddef>

#include "core/base/error_code.h"

namespace mckpt::impl::verify_check {

// The checks, in the order of the report.
enum Which : std::size_t {
  kFiles,
  kFormat,
  kIndex,
  kCoverage,
  kItems,
  kCrc,
  kValues,
  kExperts,
  kParts,
  kCheckCount
};

// The check that findings with a code belong to.
Which check_of_code(Code code);

}  // namespace mckpt::impl::verify_check
