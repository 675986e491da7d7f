// verify --against: what both sides hold besides tensors. Equal is never said of tensors alone without a
// word.
#pragma once

#include <string>

#include "io/verify/verify.h"

namespace mckpt {

// Adds the check "objects". Returns whether all of them were compared and are equal. Both sides under the
// same names, as a conversion of `source` would carry its objects over.
bool compare_objects(const Store& there, const Store& source, int threads, VerifyReport& report);

// The same where there is nothing to compare, for a reason that is told.
void objects_not_compared(std::string reason, VerifyReport& report);

}  // namespace mckpt
