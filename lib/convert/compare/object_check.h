// The check "objects" of a comparison: everything beside tensors that both sides have, such as args and an
// iteration number. A report never calls two sides equal without a line about their objects, compared or not.
#pragma once

#include <optional>
#include <string>

#include "convert/compare/differences/objects.h"
#include "convert/compare/differences/option_groups.h"

namespace mckpt::impl {

struct Comparing;
struct Intended;

// Adds the check. Returns whether all objects were compared and are equal, except those that the conversion
// leaves out. Where tensors were chosen by name, objects are not compared. pre: the objects of both sides
// have the same names, as a conversion of `source` would copy them.
// `options`: what differs in the options of the optimizer, where they are compared apart; nothing: they are
// objects.
bool compare_objects(const ObjectSide& tested, const ObjectSide& source, const Intended& intended, const Comparing& c,
                     std::optional<OptionDifferences> options = {});

// Adds the check for two sides whose objects cannot be compared, with the reason.
void objects_not_compared(std::string reason, VerifyReport& report);

}  // namespace mckpt::impl
