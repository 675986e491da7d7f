// The check "objects" of a comparison: everything beside tensors that both sides have, such as args and an
// iteration number. A report never calls two sides equal without a line about their objects, compared or not.
#pragma once

#include <string>

namespace mckpt::impl {

struct Comparing;
struct Sides;
struct VerifyReport;

// Adds the check. Returns whether all objects were compared and are equal, except those that the conversion
// leaves out. Where tensors were chosen by name, objects are not compared. pre: the objects of both sides
// have the same names, as a conversion of the source would copy them.
bool compare_objects(const Sides& sides, const Comparing& c);

// Adds the check for two sides whose objects cannot be compared, with the reason.
void objects_not_compared(std::string reason, VerifyReport& report);

// The objects that could not be compared, counted for the end of an answer: "1 object was", "2 objects were";
// "" if there are none.
std::string counted_unseen_objects(const VerifyReport& report);

}  // namespace mckpt::impl
