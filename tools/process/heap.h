// The allocator's heap, made ready for the tables of a checkpoint's headers.
#pragma once

namespace mckpt::impl {

// Called first in main(), while there is one thread.
void prepare_heap();

}  // namespace mckpt::impl
