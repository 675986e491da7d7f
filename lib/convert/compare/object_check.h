// The check "objects" of a comparison: everything beside tensors that both sides have, such as args and an
// iteration number. Tensors alone are never called equal without a word about the objects.
#pragma once

#include <string>

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check. Returns whether all objects were compared and are equal. pre: both sides have the same
// names, as a conversion of `source` would carry its objects over.
bool compare_objects(const Store& tested, const Store& source, int threads, VerifyReport& report);

// Adds the check where objects cannot be compared, with the reason.
void objects_not_compared(std::string reason, VerifyReport& report);

}  // namespace mckpt::impl
