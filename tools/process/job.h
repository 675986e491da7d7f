// The job of ranks that this process of the program is part of. The library sees only the Comm that it is given.
#pragma once

namespace mckpt::impl {

class Job;

Job& this_job();

}  // namespace mckpt::impl
