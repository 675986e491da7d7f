// Fields of the objects that describe how a DTensor is distributed.
#pragma once

#include <string_view>
#include <vector>

#include "io/pickle/classes.h"
#include "io/pickle/value.h"

namespace mckpt::impl {

// More ranks than any run has; a mesh in a file made by hand could claim any number.
inline constexpr i64 kMostRanks = 1 << 20;

// The object, if it is of that class; null otherwise.
const PickleObject* spec_object(PickleValue v, Known known);
// None if there is no such field.
PickleValue spec_field(const PickleObject& o, std::string_view name);
// All integers in it, in order: one, or a tuple (of tuples) of them. Throws kBadPickle where there are too
// many.
std::vector<i64> spec_integers(PickleValue v);

}  // namespace mckpt::impl
