// The job of ranks that this process of the program is part of. The library sees only the Comm that it is
// given.
#pragma once

namespace mckpt::impl {

class Job;

// The job, made on the first call from the launcher's environment variables (Open MPI's and the like); a
// process without a launcher is a job of one rank.
Job& this_job();

}  // namespace mckpt::impl
