// Lays a file out as a request wants it (io/hdf5/wire.h): groups, datasets without data, virtual datasets,
// attributes. The library decides where everything is.
#pragma once

#include <string>

#include "hdf5/answer.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

// Answers offsets, pieces and size, or one fault. `access`: memory_access().
void compose(Answer& out, const std::string& request, hid_t access);

}  // namespace mckpt::impl
