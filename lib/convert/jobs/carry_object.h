// Objects of the source become objects of the result. Their records are copied as they are, except that of a source
// whose records are packed: the result says of no record that it is packed, so the object is written afresh.
#pragma once

#include <vector>

#include "convert/jobs/carried_record.h"

namespace mckpt::impl {

// Puts the object into the rank's file of the layout, and what is to be copied for it into `records`. pre and throws
// as carry_object(); kUnsupportedTorchFile for an object that is packed and has tensors in it.
void add_carried(const Store& source, const Object& object, DcpLayout& layout, DcpName name, i32 rank,
                 std::vector<CarriedRecord>& records);

}  // namespace mckpt::impl
